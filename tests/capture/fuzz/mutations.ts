// Mutates bodies as broken, careless and hostile clients might. Text is mutated before it is packed, bytes after. The
// given source of randomness decides everything.

import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import lzString from 'lz-string'

export type Random = () => number

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!
}

function upTo(random: Random, max: number): number {
  return Math.floor(random() * (max + 1))
}

/** Mostly small, sometimes far larger than anything that a client sends. */
function size(random: Random): number {
  return Math.floor(10 ** (random() * pick(random, [1, 1, 2, 2, 3, 3, 3, 5.5])))
}

const hostileKeys =
  '"__proto__":{"polluted":true,"event":"x","distinct_id":"x"},"constructor":{"prototype":{"polluted":true}},'

/** JSON values that no client sends on purpose. */
const oddValues: readonly ((random: Random) => string)[] = [
  random => '['.repeat(size(random)) + ']'.repeat(size(random)),
  random => `${'{"a":'.repeat(size(random) / 5)}1${'}'.repeat(upTo(random, 200))}`,
  random => `1${'0'.repeat(size(random))}`,
  random => `0.${'0'.repeat(size(random))}1`,
  random => `-${'9'.repeat(size(random))}e${upTo(random, 999)}`,
  () => pickedNumbers,
  random => `"${'\\u0041'.repeat(size(random) / 6 + 1)}"`,
  random => `"${'😀é'.repeat(size(random) / 6 + 1)}"`,
  random => `"${'\\\\'.repeat(size(random) / 2 + 1)}"`,
  random => `"${' '.repeat(size(random))}"`,
  random => `[${'1e5,'.repeat(size(random) / 4)}0]`,
  random => `{${Array.from({ length: size(random) / 10 + 1 }, (_, index) => `"k${index}":{}`).join()}}`,
  () => `{${hostileKeys}"a":1}`,
  () => '"\\ud800"',
  () => '"\\udc00\\ud800"',
  () => '"\\ud83d\\ude00"',
  () => '"a\\u0000b"',
  () => '""',
  () => 'null',
  () => 'true',
  () => '{}',
  () => '[]',
  () => 'NaN',
  () => '"2025-07-01T10:00:00Z"',
  () => '"0197c5a0-0000-7000-8000-000000000abc"',
]
const pickedNumbers = '[-0,1e400,-1e400,9007199254740993,18446744073709551616,1.0,1e2,5e-324]'

type TextMutation = (text: string, random: Random) => string

const textMutations: readonly TextMutation[] = [
  // Replaces a value.
  (text, random) => {
    const values = [...text.matchAll(/"(?:[^"\\]|\\.){0,200}"(?!\s*:)|-?\d+(?:\.\d+)?|true|false|null|\{\}|\[\]/g)]
    if (values.length === 0) return text
    const value = pick(random, values)
    return text.slice(0, value.index) + pick(random, oddValues)(random) + text.slice(value.index + value[0].length)
  },
  // Repeats a member with another value.
  (text, random) => {
    const members = [...text.matchAll(/"([^"\\]{1,40})"\s*:/g)]
    if (members.length === 0) return text
    const member = pick(random, members)
    const other = pick(random, [pick(random, oddValues)(random), 'null', '5'])
    return `${text.slice(0, member.index)}${member[0]}${other},${text.slice(member.index)}`
  },
  (text, random) => insertAt(text, placeAfter(text, '{', random), hostileKeys),
  // Renames a key or writes it with escapes.
  (text, random) => {
    const keys = [...text.matchAll(/"([^"\\]{1,40})"(?=\s*:)/g)]
    if (keys.length === 0) return text
    const key = pick(random, keys)
    const names = [
      '$cookieless_mode',
      '$host',
      'event',
      'batch',
      'properties',
      'distinct_id',
      '$distinct_id',
      'uuid',
      'offset',
      'token',
      'data',
    ]
    const escaped = [...key[1]!].map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
    const name = random() < 0.5 ? escaped : pick(random, [...names, '__proto__', 'toString', '', '$set', 'sent_at'])
    return `${text.slice(0, key.index)}"${name}"${text.slice(key.index + key[0].length)}`
  },
  (text, random) =>
    insertAt(text, upTo(random, text.length), pick(random, [' ', '\t\r\n', '\0', '\ufeff', '/**/', ',', '}', '\\'])),
  (text, random) => '['.repeat(size(random)) + text,
  (text, random) => `[${`${text},`.repeat(upTo(random, Math.min(200, 200_000 / (text.length + 1))))}${text}]`,
  (text, random) => `{"api_key":"x","batch":[${text}],"sent_at":${pick(random, oddValues)(random)}}`,
  text => `\ufeff${text}`,
  (text, random) => text + ' '.repeat(size(random)),
]

function insertAt(text: string, at: number, what: string): string {
  return text.slice(0, at) + what + text.slice(at)
}

function placeAfter(text: string, char: string, random: Random): number {
  const places = [...text.matchAll(new RegExp(`\\${char}`, 'g'))]
  return places.length === 0 ? 0 : pick(random, places).index + 1
}

export function mutateText(text: string, random: Random): string {
  let mutated = text
  for (let left = upTo(random, 2); left > 0; left--) mutated = pick(random, textMutations)(mutated, random)
  return mutated
}

const byteMutations: readonly ((bytes: Buffer, random: Random) => Buffer)[] = [
  (bytes, random) => {
    const flipped = Buffer.from(bytes)
    for (let left = upTo(random, 8); left > 0 && flipped.length > 0; left--)
      flipped[upTo(random, flipped.length - 1)]! ^= 1 << upTo(random, 7)
    return flipped
  },
  (bytes, random) => bytes.subarray(0, upTo(random, bytes.length)),
  (bytes, random) => bytes.subarray(upTo(random, Math.min(8, bytes.length))),
  (bytes, random) => {
    const at = upTo(random, bytes.length)
    const odd = [
      Buffer.from([0xff, 0xfe]),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.from([0]),
      Buffer.from([0xc0, 0xaf]),
    ]
    return Buffer.concat([bytes.subarray(0, at), pick(random, odd), bytes.subarray(at)])
  },
  (bytes, random) => {
    const from = upTo(random, bytes.length)
    const piece = bytes.subarray(from, from + upTo(random, 64))
    const at = upTo(random, bytes.length)
    return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)])
  },
]

/** One time in six. */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  return random() < 0.83 ? bytes : pick(random, byteMutations)(bytes, random)
}

export interface Packed {
  readonly body: Buffer
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
}

const formType = { 'content-type': 'application/x-www-form-urlencoded' }
const blanks = Buffer.alloc(3 * 1024 * 1024, 0x20)
/** Megabytes packed in kilobytes. */
const bombs = [gzipSync(blanks), brotliCompressSync(blanks), zstdCompressSync(blanks)]

const packings: readonly ((text: string, random: Random) => Packed)[] = [
  text => ({ body: gzipSync(text) }),
  text => ({ body: gzipSync(text), headers: { 'content-encoding': 'gzip' } }),
  text => ({ body: gzipSync(text), query: 'compression=gzip-js' }),
  text => ({ body: Buffer.concat([gzipSync(text), Buffer.from('garbage')]) }),
  text => ({ body: Buffer.concat([gzipSync(text.slice(0, 5)), gzipSync(text.slice(5))]) }),
  (text, random) => {
    const body = gzipSync(text)
    // Damages the checksum or the size.
    body[body.length - 1 - upTo(random, 7)]! ^= 0x55
    return { body }
  },
  text => ({ body: gzipSync(gzipSync(text)) }),
  text => ({ body: brotliCompressSync(text, { params: { 1: 1 } }), headers: { 'content-encoding': 'br' } }),
  text => ({ body: zstdCompressSync(text), headers: { 'content-encoding': 'zstd' } }),
  text => ({ body: deflateSync(text), headers: { 'content-encoding': 'deflate' } }),
  text => ({ body: deflateRawSync(text), headers: { 'content-encoding': 'deflate' } }),
  text => ({ body: Buffer.from(base64(text)) }),
  text => ({ body: Buffer.from(base64(base64(text))) }),
  (text, random) => ({
    body: Buffer.from(base64(text).replaceAll(/(.{60})/g, `$1${pick(random, ['\r\n', ' ', '=', '-'])}`)),
  }),
  text => ({ body: Buffer.from(base64(gzipSync(text))) }),
  text => ({ body: Buffer.from(lz64(text)), query: 'compression=lz64' }),
  text => ({ body: form([['data', base64(text)]]), headers: formType }),
  text => ({ body: form([['data', text]]), headers: formType }),
  text => ({
    body: form([
      ['compression', 'lz64'],
      ['data', lz64(text)],
    ]),
    headers: formType,
  }),
  text => ({ body: form([['data', base64(gzipSync(text))]]), headers: formType, query: 'compression=gzip' }),
  text => ({
    body: form([
      ['data', text],
      ['data', text],
    ]),
    headers: formType,
  }),
  (text, random) => {
    const fields = Array.from({ length: size(random) / 4 }, (_, index) => [
      `f${index}`,
      pick(random, ['', '%', '&=', 'data=']),
    ])
    return { body: form([['_', '1'], ...(fields as [string, string][]), ['data', base64(text)]]), headers: formType }
  },
  text => ({ body: Buffer.from(`data=${text}`), headers: formType }),
  (text, random) => ({
    body: Buffer.from(`data=${'%7B%22%'.repeat(size(random) / 6)}${text.slice(0, 9)}`),
    headers: formType,
  }),
  (_text, random) => ({
    body: pick(random, bombs),
    headers: { 'content-encoding': pick(random, ['gzip', 'br', 'zstd']) },
  }),
  text => ({ body: Buffer.from(text, 'utf16le') }),
  text => ({ body: Buffer.alloc(0), query: `data=${encodeURIComponent(base64(text.slice(0, 8_000)))}` }),
]

/** Leaves it unchanged every other time. */
export function pack(text: string, random: Random): Packed {
  return random() < 0.5 ? { body: Buffer.from(text) } : pick(random, packings)(text, random)
}

function base64(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as string).toString('base64')
}

/** Bounded because the library takes seconds for megabytes. */
function lz64(text: string): string {
  return lzString.compressToBase64(text.slice(0, 20_000))
}

function form(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.from(fields.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&'))
}
