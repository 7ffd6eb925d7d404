// Parses JSON as old clients write it: JSON5 syntax (comments, single quotes, bare keys, trailing commas, hex numbers),
// and NaN and Infinity, which become null. Used only when strict JSON failed. Source: docs/wire/evaluation.md 1.3.

import { ascii } from '#core/ascii.ts'
import { type JsonObject, type JsonValue, parseNumberOrLiteral, setOwnValue } from '#core/json.ts'

const { blank, dot, slash, zero, nine, lowerE, lowerX, caseBit } = ascii

const depthMax = 128
/** Longer texts are refused unread: this parser is a hundred times slower than the strict one. */
const charsMax = 128 * 1024
const whitespace = /[\s\ufeff]*/y
const comment = /\/\/[^\n\r\u2028\u2029]*|\/\*[\s\S]*?\*\//y
const bareKey = /[\p{ID_Start}$_][\p{ID_Continue}$_\u200c\u200d]*/uy
const literal = /[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|Infinity|NaN)|true|false|null/y
const escapes: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', 0: '\0' }

/** @throws SyntaxError */
export function parseTolerantJson(text: string): JsonValue {
  if (text.length > charsMax) throw new SyntaxError('too long to be read tolerantly')
  return new TolerantParser(text).parse()
}

/** A double holds every integer of this many digits exactly. */
const exactDigitsMax = 15
/** From this character code on, some characters count as blanks. */
const notAscii = 0x80

class TolerantParser {
  readonly #text: string
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  parse(): JsonValue {
    const value = this.#value()
    this.#skip()
    if (this.#at < this.#text.length) throw this.#unexpected()
    return value
  }

  #value(): JsonValue {
    this.#skip()
    const char = this.#text[this.#at]
    if (char === '{' || char === '[') {
      if (++this.#depth > depthMax) throw new SyntaxError('nested too deeply')
      const value = char === '{' ? this.#object() : this.#list()
      this.#depth--
      return value
    }
    if (char === '"' || char === "'") return this.#string(char)
    return this.#literal()
  }

  #object(): JsonObject {
    const object: JsonObject = {}
    this.#at++
    for (;;) {
      this.#skip()
      if (this.#takes('}')) return object
      const char = this.#text[this.#at]
      const key = char === '"' || char === "'" ? this.#string(char) : this.#matched(bareKey)
      this.#skip()
      if (!this.#takes(':')) throw this.#unexpected()
      setOwnValue(object, key, this.#value())
      this.#skip()
      if (!this.#takes(',') && this.#text[this.#at] !== '}') throw this.#unexpected()
    }
  }

  #list(): JsonValue[] {
    const list: JsonValue[] = []
    this.#at++
    for (;;) {
      this.#skip()
      if (this.#takes(']')) return list
      list.push(this.#value())
      this.#skip()
      if (!this.#takes(',') && this.#text[this.#at] !== ']') throw this.#unexpected()
    }
  }

  #string(quote: string): string {
    let out = ''
    this.#at++
    for (;;) {
      const char = this.#text[this.#at++]
      if (char === undefined || char === '\n' || char === '\r') throw this.#unexpected()
      if (char === quote) return out
      out += char === '\\' ? this.#escape() : char
    }
  }

  #escape(): string {
    const char = this.#text[this.#at++]
    if (char === undefined) throw this.#unexpected()
    if (char === 'u') return this.#codeUnit(4)
    if (char === 'x') return this.#codeUnit(2)
    if (char === '\r' && this.#text[this.#at] === '\n') this.#at++
    if ('\n\r\u2028\u2029'.includes(char)) return '' // a line goes on
    if (/[1-9]/.test(char)) throw this.#unexpected()
    return Object.hasOwn(escapes, char) ? escapes[char]! : char
  }

  #codeUnit(digitCount: number): string {
    const digits = this.#text.slice(this.#at, this.#at + digitCount)
    if (digits.length < digitCount || !/^[0-9a-fA-F]+$/.test(digits)) throw this.#unexpected()
    this.#at += digitCount
    return String.fromCharCode(Number.parseInt(digits, 16))
  }

  #literal(): JsonValue {
    const digits = this.#digits()
    if (digits !== null) return digits
    const word = this.#matched(literal)
    if (word === 'true') return true
    if (word === 'false') return false
    if (word === 'null' || /(?:NaN|Infinity)$/.test(word)) return null
    const unsigned = word.replace(/^[+-]/, '')
    const sign = word.startsWith('-') ? '-' : ''
    if (/^0[xX]/.test(unsigned)) return parseNumberOrLiteral(sign + BigInt(unsigned).toString())
    if (/^0\d/.test(unsigned)) throw this.#unexpected()
    // JSON does not allow `.5` and `5.`, so a zero is added.
    return parseNumberOrLiteral(sign + unsigned.replace(/^\./, '0.').replace(/\.(?=$|[eE])/, ''))
  }

  /** A shortcut for short whole numbers, which most numbers are: a text with many of them takes a third of the time. */
  #digits(): number | null {
    const text = this.#text
    const at = this.#at
    let end = at
    let value = 0
    let unit = text.charCodeAt(end)
    while (unit >= zero && unit <= nine) {
      value = value * 10 + (unit - zero)
      unit = text.charCodeAt(++end)
    }
    const count = end - at
    const isMore = unit === dot || (unit | caseBit) === lowerE || (unit | caseBit) === lowerX
    if (isMore || count === 0 || count > exactDigitsMax || (count > 1 && text.charCodeAt(at) === zero)) return null
    this.#at = end
    return value
  }

  #matched(form: RegExp): string {
    form.lastIndex = this.#at
    const match = form.exec(this.#text)
    if (match === null) throw this.#unexpected()
    this.#at += match[0].length
    return match[0]
  }

  #takes(char: string): boolean {
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  #skip(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at)
      if (unit > blank && unit < notAscii && unit !== slash) return
      whitespace.lastIndex = this.#at
      whitespace.exec(this.#text)
      this.#at = whitespace.lastIndex
      comment.lastIndex = this.#at
      if (this.#text[this.#at] !== '/' || comment.exec(this.#text) === null) return
      this.#at = comment.lastIndex
    }
  }

  #unexpected(): SyntaxError {
    return new SyntaxError(`unexpected input at ${this.#at}`)
  }
}
