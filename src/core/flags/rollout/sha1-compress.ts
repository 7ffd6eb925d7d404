// The 80 rounds of SHA-1 over one block, written out. This is nearly twice as fast as loops, because every word of the
// schedule and of the state has its own register and none is moved. `sha1.ts` makes the blocks.
// Source: FIPS 180-4, 6.1.2.

function rotateBy1(word: number): number {
  return (word << 1) | (word >>> 31)
}

function rotateBy5(word: number): number {
  return (word << 5) | (word >>> 27)
}

function rotateBy30(word: number): number {
  return (word << 30) | (word >>> 2)
}

/** Mixes a block of 16 words into a state of 5 words. */
export function compressSha1Block(words: Int32Array, state: Int32Array): void {
  let w0 = words[0]!
  let w1 = words[1]!
  let w2 = words[2]!
  let w3 = words[3]!
  let w4 = words[4]!
  let w5 = words[5]!
  let w6 = words[6]!
  let w7 = words[7]!
  let w8 = words[8]!
  let w9 = words[9]!
  let w10 = words[10]!
  let w11 = words[11]!
  let w12 = words[12]!
  let w13 = words[13]!
  let w14 = words[14]!
  let w15 = words[15]!
  let a = state[0]!
  let b = state[1]!
  let c = state[2]!
  let d = state[3]!
  let e = state[4]!

  // Rounds 0 to 19.
  e = (rotateBy5(a) + (d ^ (b & (c ^ d))) + e + 0x5a827999 + w0) | 0
  b = rotateBy30(b)
  d = (rotateBy5(e) + (c ^ (a & (b ^ c))) + d + 0x5a827999 + w1) | 0
  a = rotateBy30(a)
  c = (rotateBy5(d) + (b ^ (e & (a ^ b))) + c + 0x5a827999 + w2) | 0
  e = rotateBy30(e)
  b = (rotateBy5(c) + (a ^ (d & (e ^ a))) + b + 0x5a827999 + w3) | 0
  d = rotateBy30(d)
  a = (rotateBy5(b) + (e ^ (c & (d ^ e))) + a + 0x5a827999 + w4) | 0
  c = rotateBy30(c)
  e = (rotateBy5(a) + (d ^ (b & (c ^ d))) + e + 0x5a827999 + w5) | 0
  b = rotateBy30(b)
  d = (rotateBy5(e) + (c ^ (a & (b ^ c))) + d + 0x5a827999 + w6) | 0
  a = rotateBy30(a)
  c = (rotateBy5(d) + (b ^ (e & (a ^ b))) + c + 0x5a827999 + w7) | 0
  e = rotateBy30(e)
  b = (rotateBy5(c) + (a ^ (d & (e ^ a))) + b + 0x5a827999 + w8) | 0
  d = rotateBy30(d)
  a = (rotateBy5(b) + (e ^ (c & (d ^ e))) + a + 0x5a827999 + w9) | 0
  c = rotateBy30(c)
  e = (rotateBy5(a) + (d ^ (b & (c ^ d))) + e + 0x5a827999 + w10) | 0
  b = rotateBy30(b)
  d = (rotateBy5(e) + (c ^ (a & (b ^ c))) + d + 0x5a827999 + w11) | 0
  a = rotateBy30(a)
  c = (rotateBy5(d) + (b ^ (e & (a ^ b))) + c + 0x5a827999 + w12) | 0
  e = rotateBy30(e)
  b = (rotateBy5(c) + (a ^ (d & (e ^ a))) + b + 0x5a827999 + w13) | 0
  d = rotateBy30(d)
  a = (rotateBy5(b) + (e ^ (c & (d ^ e))) + a + 0x5a827999 + w14) | 0
  c = rotateBy30(c)
  e = (rotateBy5(a) + (d ^ (b & (c ^ d))) + e + 0x5a827999 + w15) | 0
  b = rotateBy30(b)
  w0 = rotateBy1(w13 ^ w8 ^ w2 ^ w0)
  d = (rotateBy5(e) + (c ^ (a & (b ^ c))) + d + 0x5a827999 + w0) | 0
  a = rotateBy30(a)
  w1 = rotateBy1(w14 ^ w9 ^ w3 ^ w1)
  c = (rotateBy5(d) + (b ^ (e & (a ^ b))) + c + 0x5a827999 + w1) | 0
  e = rotateBy30(e)
  w2 = rotateBy1(w15 ^ w10 ^ w4 ^ w2)
  b = (rotateBy5(c) + (a ^ (d & (e ^ a))) + b + 0x5a827999 + w2) | 0
  d = rotateBy30(d)
  w3 = rotateBy1(w0 ^ w11 ^ w5 ^ w3)
  a = (rotateBy5(b) + (e ^ (c & (d ^ e))) + a + 0x5a827999 + w3) | 0
  c = rotateBy30(c)

  // Rounds 20 to 39.
  w4 = rotateBy1(w1 ^ w12 ^ w6 ^ w4)
  e = (rotateBy5(a) + (b ^ c ^ d) + e + 0x6ed9eba1 + w4) | 0
  b = rotateBy30(b)
  w5 = rotateBy1(w2 ^ w13 ^ w7 ^ w5)
  d = (rotateBy5(e) + (a ^ b ^ c) + d + 0x6ed9eba1 + w5) | 0
  a = rotateBy30(a)
  w6 = rotateBy1(w3 ^ w14 ^ w8 ^ w6)
  c = (rotateBy5(d) + (e ^ a ^ b) + c + 0x6ed9eba1 + w6) | 0
  e = rotateBy30(e)
  w7 = rotateBy1(w4 ^ w15 ^ w9 ^ w7)
  b = (rotateBy5(c) + (d ^ e ^ a) + b + 0x6ed9eba1 + w7) | 0
  d = rotateBy30(d)
  w8 = rotateBy1(w5 ^ w0 ^ w10 ^ w8)
  a = (rotateBy5(b) + (c ^ d ^ e) + a + 0x6ed9eba1 + w8) | 0
  c = rotateBy30(c)
  w9 = rotateBy1(w6 ^ w1 ^ w11 ^ w9)
  e = (rotateBy5(a) + (b ^ c ^ d) + e + 0x6ed9eba1 + w9) | 0
  b = rotateBy30(b)
  w10 = rotateBy1(w7 ^ w2 ^ w12 ^ w10)
  d = (rotateBy5(e) + (a ^ b ^ c) + d + 0x6ed9eba1 + w10) | 0
  a = rotateBy30(a)
  w11 = rotateBy1(w8 ^ w3 ^ w13 ^ w11)
  c = (rotateBy5(d) + (e ^ a ^ b) + c + 0x6ed9eba1 + w11) | 0
  e = rotateBy30(e)
  w12 = rotateBy1(w9 ^ w4 ^ w14 ^ w12)
  b = (rotateBy5(c) + (d ^ e ^ a) + b + 0x6ed9eba1 + w12) | 0
  d = rotateBy30(d)
  w13 = rotateBy1(w10 ^ w5 ^ w15 ^ w13)
  a = (rotateBy5(b) + (c ^ d ^ e) + a + 0x6ed9eba1 + w13) | 0
  c = rotateBy30(c)
  w14 = rotateBy1(w11 ^ w6 ^ w0 ^ w14)
  e = (rotateBy5(a) + (b ^ c ^ d) + e + 0x6ed9eba1 + w14) | 0
  b = rotateBy30(b)
  w15 = rotateBy1(w12 ^ w7 ^ w1 ^ w15)
  d = (rotateBy5(e) + (a ^ b ^ c) + d + 0x6ed9eba1 + w15) | 0
  a = rotateBy30(a)
  w0 = rotateBy1(w13 ^ w8 ^ w2 ^ w0)
  c = (rotateBy5(d) + (e ^ a ^ b) + c + 0x6ed9eba1 + w0) | 0
  e = rotateBy30(e)
  w1 = rotateBy1(w14 ^ w9 ^ w3 ^ w1)
  b = (rotateBy5(c) + (d ^ e ^ a) + b + 0x6ed9eba1 + w1) | 0
  d = rotateBy30(d)
  w2 = rotateBy1(w15 ^ w10 ^ w4 ^ w2)
  a = (rotateBy5(b) + (c ^ d ^ e) + a + 0x6ed9eba1 + w2) | 0
  c = rotateBy30(c)
  w3 = rotateBy1(w0 ^ w11 ^ w5 ^ w3)
  e = (rotateBy5(a) + (b ^ c ^ d) + e + 0x6ed9eba1 + w3) | 0
  b = rotateBy30(b)
  w4 = rotateBy1(w1 ^ w12 ^ w6 ^ w4)
  d = (rotateBy5(e) + (a ^ b ^ c) + d + 0x6ed9eba1 + w4) | 0
  a = rotateBy30(a)
  w5 = rotateBy1(w2 ^ w13 ^ w7 ^ w5)
  c = (rotateBy5(d) + (e ^ a ^ b) + c + 0x6ed9eba1 + w5) | 0
  e = rotateBy30(e)
  w6 = rotateBy1(w3 ^ w14 ^ w8 ^ w6)
  b = (rotateBy5(c) + (d ^ e ^ a) + b + 0x6ed9eba1 + w6) | 0
  d = rotateBy30(d)
  w7 = rotateBy1(w4 ^ w15 ^ w9 ^ w7)
  a = (rotateBy5(b) + (c ^ d ^ e) + a + 0x6ed9eba1 + w7) | 0
  c = rotateBy30(c)

  // Rounds 40 to 59.
  w8 = rotateBy1(w5 ^ w0 ^ w10 ^ w8)
  e = (rotateBy5(a) + ((b & c) | (d & (b | c))) + e + 0x8f1bbcdc + w8) | 0
  b = rotateBy30(b)
  w9 = rotateBy1(w6 ^ w1 ^ w11 ^ w9)
  d = (rotateBy5(e) + ((a & b) | (c & (a | b))) + d + 0x8f1bbcdc + w9) | 0
  a = rotateBy30(a)
  w10 = rotateBy1(w7 ^ w2 ^ w12 ^ w10)
  c = (rotateBy5(d) + ((e & a) | (b & (e | a))) + c + 0x8f1bbcdc + w10) | 0
  e = rotateBy30(e)
  w11 = rotateBy1(w8 ^ w3 ^ w13 ^ w11)
  b = (rotateBy5(c) + ((d & e) | (a & (d | e))) + b + 0x8f1bbcdc + w11) | 0
  d = rotateBy30(d)
  w12 = rotateBy1(w9 ^ w4 ^ w14 ^ w12)
  a = (rotateBy5(b) + ((c & d) | (e & (c | d))) + a + 0x8f1bbcdc + w12) | 0
  c = rotateBy30(c)
  w13 = rotateBy1(w10 ^ w5 ^ w15 ^ w13)
  e = (rotateBy5(a) + ((b & c) | (d & (b | c))) + e + 0x8f1bbcdc + w13) | 0
  b = rotateBy30(b)
  w14 = rotateBy1(w11 ^ w6 ^ w0 ^ w14)
  d = (rotateBy5(e) + ((a & b) | (c & (a | b))) + d + 0x8f1bbcdc + w14) | 0
  a = rotateBy30(a)
  w15 = rotateBy1(w12 ^ w7 ^ w1 ^ w15)
  c = (rotateBy5(d) + ((e & a) | (b & (e | a))) + c + 0x8f1bbcdc + w15) | 0
  e = rotateBy30(e)
  w0 = rotateBy1(w13 ^ w8 ^ w2 ^ w0)
  b = (rotateBy5(c) + ((d & e) | (a & (d | e))) + b + 0x8f1bbcdc + w0) | 0
  d = rotateBy30(d)
  w1 = rotateBy1(w14 ^ w9 ^ w3 ^ w1)
  a = (rotateBy5(b) + ((c & d) | (e & (c | d))) + a + 0x8f1bbcdc + w1) | 0
  c = rotateBy30(c)
  w2 = rotateBy1(w15 ^ w10 ^ w4 ^ w2)
  e = (rotateBy5(a) + ((b & c) | (d & (b | c))) + e + 0x8f1bbcdc + w2) | 0
  b = rotateBy30(b)
  w3 = rotateBy1(w0 ^ w11 ^ w5 ^ w3)
  d = (rotateBy5(e) + ((a & b) | (c & (a | b))) + d + 0x8f1bbcdc + w3) | 0
  a = rotateBy30(a)
  w4 = rotateBy1(w1 ^ w12 ^ w6 ^ w4)
  c = (rotateBy5(d) + ((e & a) | (b & (e | a))) + c + 0x8f1bbcdc + w4) | 0
  e = rotateBy30(e)
  w5 = rotateBy1(w2 ^ w13 ^ w7 ^ w5)
  b = (rotateBy5(c) + ((d & e) | (a & (d | e))) + b + 0x8f1bbcdc + w5) | 0
  d = rotateBy30(d)
  w6 = rotateBy1(w3 ^ w14 ^ w8 ^ w6)
  a = (rotateBy5(b) + ((c & d) | (e & (c | d))) + a + 0x8f1bbcdc + w6) | 0
  c = rotateBy30(c)
  w7 = rotateBy1(w4 ^ w15 ^ w9 ^ w7)
  e = (rotateBy5(a) + ((b & c) | (d & (b | c))) + e + 0x8f1bbcdc + w7) | 0
  b = rotateBy30(b)
  w8 = rotateBy1(w5 ^ w0 ^ w10 ^ w8)
  d = (rotateBy5(e) + ((a & b) | (c & (a | b))) + d + 0x8f1bbcdc + w8) | 0
  a = rotateBy30(a)
  w9 = rotateBy1(w6 ^ w1 ^ w11 ^ w9)
  c = (rotateBy5(d) + ((e & a) | (b & (e | a))) + c + 0x8f1bbcdc + w9) | 0
  e = rotateBy30(e)
  w10 = rotateBy1(w7 ^ w2 ^ w12 ^ w10)
  b = (rotateBy5(c) + ((d & e) | (a & (d | e))) + b + 0x8f1bbcdc + w10) | 0
  d = rotateBy30(d)
  w11 = rotateBy1(w8 ^ w3 ^ w13 ^ w11)
  a = (rotateBy5(b) + ((c & d) | (e & (c | d))) + a + 0x8f1bbcdc + w11) | 0
  c = rotateBy30(c)

  // Rounds 60 to 79.
  w12 = rotateBy1(w9 ^ w4 ^ w14 ^ w12)
  e = (rotateBy5(a) + (b ^ c ^ d) + e + 0xca62c1d6 + w12) | 0
  b = rotateBy30(b)
  w13 = rotateBy1(w10 ^ w5 ^ w15 ^ w13)
  d = (rotateBy5(e) + (a ^ b ^ c) + d + 0xca62c1d6 + w13) | 0
  a = rotateBy30(a)
  w14 = rotateBy1(w11 ^ w6 ^ w0 ^ w14)
  c = (rotateBy5(d) + (e ^ a ^ b) + c + 0xca62c1d6 + w14) | 0
  e = rotateBy30(e)
  w15 = rotateBy1(w12 ^ w7 ^ w1 ^ w15)
  b = (rotateBy5(c) + (d ^ e ^ a) + b + 0xca62c1d6 + w15) | 0
  d = rotateBy30(d)
  w0 = rotateBy1(w13 ^ w8 ^ w2 ^ w0)
  a = (rotateBy5(b) + (c ^ d ^ e) + a + 0xca62c1d6 + w0) | 0
  c = rotateBy30(c)
  w1 = rotateBy1(w14 ^ w9 ^ w3 ^ w1)
  e = (rotateBy5(a) + (b ^ c ^ d) + e + 0xca62c1d6 + w1) | 0
  b = rotateBy30(b)
  w2 = rotateBy1(w15 ^ w10 ^ w4 ^ w2)
  d = (rotateBy5(e) + (a ^ b ^ c) + d + 0xca62c1d6 + w2) | 0
  a = rotateBy30(a)
  w3 = rotateBy1(w0 ^ w11 ^ w5 ^ w3)
  c = (rotateBy5(d) + (e ^ a ^ b) + c + 0xca62c1d6 + w3) | 0
  e = rotateBy30(e)
  w4 = rotateBy1(w1 ^ w12 ^ w6 ^ w4)
  b = (rotateBy5(c) + (d ^ e ^ a) + b + 0xca62c1d6 + w4) | 0
  d = rotateBy30(d)
  w5 = rotateBy1(w2 ^ w13 ^ w7 ^ w5)
  a = (rotateBy5(b) + (c ^ d ^ e) + a + 0xca62c1d6 + w5) | 0
  c = rotateBy30(c)
  w6 = rotateBy1(w3 ^ w14 ^ w8 ^ w6)
  e = (rotateBy5(a) + (b ^ c ^ d) + e + 0xca62c1d6 + w6) | 0
  b = rotateBy30(b)
  w7 = rotateBy1(w4 ^ w15 ^ w9 ^ w7)
  d = (rotateBy5(e) + (a ^ b ^ c) + d + 0xca62c1d6 + w7) | 0
  a = rotateBy30(a)
  w8 = rotateBy1(w5 ^ w0 ^ w10 ^ w8)
  c = (rotateBy5(d) + (e ^ a ^ b) + c + 0xca62c1d6 + w8) | 0
  e = rotateBy30(e)
  w9 = rotateBy1(w6 ^ w1 ^ w11 ^ w9)
  b = (rotateBy5(c) + (d ^ e ^ a) + b + 0xca62c1d6 + w9) | 0
  d = rotateBy30(d)
  w10 = rotateBy1(w7 ^ w2 ^ w12 ^ w10)
  a = (rotateBy5(b) + (c ^ d ^ e) + a + 0xca62c1d6 + w10) | 0
  c = rotateBy30(c)
  w11 = rotateBy1(w8 ^ w3 ^ w13 ^ w11)
  e = (rotateBy5(a) + (b ^ c ^ d) + e + 0xca62c1d6 + w11) | 0
  b = rotateBy30(b)
  w12 = rotateBy1(w9 ^ w4 ^ w14 ^ w12)
  d = (rotateBy5(e) + (a ^ b ^ c) + d + 0xca62c1d6 + w12) | 0
  a = rotateBy30(a)
  w13 = rotateBy1(w10 ^ w5 ^ w15 ^ w13)
  c = (rotateBy5(d) + (e ^ a ^ b) + c + 0xca62c1d6 + w13) | 0
  e = rotateBy30(e)
  w14 = rotateBy1(w11 ^ w6 ^ w0 ^ w14)
  b = (rotateBy5(c) + (d ^ e ^ a) + b + 0xca62c1d6 + w14) | 0
  d = rotateBy30(d)
  w15 = rotateBy1(w12 ^ w7 ^ w1 ^ w15)
  a = (rotateBy5(b) + (c ^ d ^ e) + a + 0xca62c1d6 + w15) | 0
  c = rotateBy30(c)

  state[0] = (state[0]! + a) | 0
  state[1] = (state[1]! + b) | 0
  state[2] = (state[2]! + c) | 0
  state[3] = (state[3]! + d) | 0
  state[4] = (state[4]! + e) | 0
}
