// The codes of ASCII characters, which are the same in UTF-16 text and in UTF-8 bytes. A module that reads text or bytes
// one by one makes constants of the codes it needs: `const { quote, comma } = ascii`. V8 compiles such constants into its
// code. Imported constants are loaded at each use instead, which makes a loop over text a fifth slower and a loop over
// bytes half as fast.

export const ascii = {
  tab: 0x09,
  lineFeed: 0x0a,
  carriageReturn: 0x0d,
  blank: 0x20,
  quote: 0x22,
  percent: 0x25,
  plus: 0x2b,
  comma: 0x2c,
  minus: 0x2d,
  dot: 0x2e,
  slash: 0x2f,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  upperT: 0x54,
  upperZ: 0x5a,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  lowerA: 0x61,
  lowerE: 0x65,
  lowerF: 0x66,
  lowerN: 0x6e,
  lowerT: 0x74,
  lowerU: 0x75,
  lowerX: 0x78,
  lowerZ: 0x7a,
  openBrace: 0x7b,
  closeBrace: 0x7d,
  /** The bit that turns an upper-case letter into lower case, and `]` into `}`. */
  caseBit: 0x20,
}
