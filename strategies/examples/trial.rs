//! Temporary.
use std::time::Instant;
use equipoise_strategies::replicas::{eplb, place_layer};
use equipoise_model::random;
use rand_core::RngCore;
fn normal(g:&mut impl RngCore)->f64{let u=|g:&mut dyn RngCore|((g.next_u64()>>11) as f64+0.5)/(1u64<<53) as f64; let (a,b)=(u(g),u(g)); (-2.0*a.ln()).sqrt()*(std::f64::consts::TAU*b).cos()}
fn peak(slot:&[u32],loads:&[f64],pes:usize)->(f64,usize){
 let mut c=vec![0;loads.len()]; for &e in slot{c[e as usize]+=1;}
 let s=slot.len()/pes; let mut m=0.0f64; let mut dup=0;
 for p in 0..pes{let l:f64=slot[p*s..(p+1)*s].iter().map(|&e|loads[e as usize]/c[e as usize] as f64).sum(); m=m.max(l);
  let mut v=slot[p*s..(p+1)*s].to_vec(); v.sort(); dup+=usize::from(v.windows(2).any(|w|w[0]==w[1]));}
 assert!(c.iter().all(|&c|c>0));
 (m/(loads.iter().sum::<f64>()/pes as f64),dup)}
fn moves(a:&[u32],b:&[u32],pes:usize)->usize{let s=a.len()/pes;let mut n=0;for p in 0..pes{let mut old=a[p*s..(p+1)*s].to_vec();for e in &b[p*s..(p+1)*s]{if let Some(i)=old.iter().position(|x|x==e){old.swap_remove(i);}else{n+=1}}}n}
fn main(){
 let tol:f64=std::env::args().nth(1).map_or(0.0,|s|s.parse().unwrap());
 let show=std::env::args().nth(2).is_some();
 let layers=8; let mut g=random::generator(1,2);
 let (mut above,mut worstm,mut worstr,mut bad5,mut bad05,mut cases,mut tmax)=(0,0.0f64,0.0f64,0,0,0,0.0f64);
 for kind in ["ln0.4","ln0.8","ln1.2","zipf"]{ for experts in [64usize,128,256,512]{ for f in [1.0,1.125,1.25]{ for pes in [8usize,16,32,64]{
  let slots=((experts as f64*f).ceil() as usize).div_ceil(pes)*pes; 
  let (mut em,mut om,mut en,mut wn,mut emv,mut omv,mut t,mut t2)=(0.0f64,0.0f64,0.0f64,0.0f64,0,0,0.0f64,0.0f64); let mut dups=0; let mut hi=0;let mut over=0.0f64;
  for _ in 0..layers{
   let loads:Vec<f64>=match kind{"zipf"=>{let mut v:Vec<f64>=(1..=experts).map(|i|1e4/i as f64).collect();random::shuffle(&mut g,&mut v);v},k=>{let s:f64=k[2..].parse().unwrap();(0..experts).map(|_|1e3*(s*normal(&mut g)).exp()).collect()}};
   let next:Vec<f64>=loads.iter().map(|l|l*(0.15*normal(&mut g)).exp()).collect();
   let e=|l:&Vec<f64>|eplb::rebalance_experts(&[l.clone()],slots,1,1,pes).unwrap().physical_to_logical[0].iter().map(|&x|x as u32).collect::<Vec<_>>();
   let (e1,e2)=(e(&loads),e(&next));
   let b=Instant::now(); let o1=place_layer(&loads,pes,slots/pes,1,1,None,vec![],0.1,tol); t+=b.elapsed().as_secs_f64();
   let b=Instant::now(); let o2=place_layer(&next,pes,slots/pes,1,1,Some(&o1),vec![],0.1,tol); t2+=b.elapsed().as_secs_f64();
   let (a,d)=peak(&e1,&loads,pes); let (o,od)=peak(&o1,&loads,pes); assert_eq!(od,0); dups+=d;
   if o>a*(1.0+1e-9){above+=1;hi+=1; if show {println!("ABOVE {o} {a} dups {d}")}}
   em=em.max(a);om=om.max(o); let (x,_)=peak(&e2,&next,pes); let (y,yd)=peak(&o2,&next,pes); assert_eq!(yd,0); en=en.max(x);wn=wn.max(y); over=over.max(y/x-1.0);
   emv+=moves(&e1,&e2,pes);omv+=moves(&o1,&o2,pes);
   if y>x*1.005{bad05+=1;}
  }
  cases+=1; let ratio=emv as f64/omv.max(1) as f64; if ratio<5.0 && omv>0 {bad5+=1;}
  worstm=worstm.max(over); worstr=worstr.max(1.0/ratio); let t=t/layers as f64; if experts==256{tmax=tmax.max(t).max(t2/layers as f64);}
  if show{println!("{kind} E{experts} R{slots} G{pes}: eplb {em:.4} ours {om:.4} above {hi} dups {dups} | next eplb {en:.4} ours {wn:.4} worst {over:.4} moves {emv} {omv} ratio {ratio:.1} | ms {:.3} {:.3}",t*1e3,t2/layers as f64*1e3);}
 }}}}
 println!("tol {tol}: cases {cases} layers above {above}; next worst over {worstm:.4} layers>0.5% {bad05}; ratio<5: {bad5} worst ratio {:.2}; ms256 {:.3}",1.0/worstr,tmax*1e3);
}
