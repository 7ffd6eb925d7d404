import assert from 'node:assert/strict'
import { isAscii } from 'node:buffer'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { readVisitor, visitorNames } from '#core/capture/cookieless-event.ts'
import { parseJsonWithDoubles } from '#core/json.ts'
import { hasLoneSurrogateEscape } from '#core/json-text.ts'
import { takesAtMost } from '../../../tests/support/cpu-time.ts'
import { runs } from '../../../tests/support/nightly.ts'
import { seededRandom, testSeed } from '../../../tests/support/seeded-random.ts'
import { findItemSlices, slicesPerItem } from '../bytes/json-slices.ts'
import { nestingDepthMax } from '../bytes/json-walk.ts'
import {
  envelopeNames,
  itemNames,
  propertyNames,
  type RequestOutline,
  readRequestOutline,
  visitorMembersOf,
} from './request-outline.ts'

type Members = Record<string, unknown>

function outlineOfText(text: string, itemCountMax = 1e6): RequestOutline | null {
  const bytes = Buffer.from(text)
  return readRequestOutline({ bytes, text, ascii: isAscii(bytes), formToken: null }, itemCountMax)
}

/** Compares an outline with the parsed text and a search for the slices. @returns false when there is no outline. */
function agrees(text: string): boolean {
  const outline = outlineOfText(text)
  if (outline === null) return false
  const root = parseJsonWithDoubles(text) as Members | Members[]
  assert.ok(!hasLoneSurrogateEscape(text), 'half a character')
  assert.deepEqual(picked(outline.root), picked(root))
  const { listKey } = outline
  const list = Array.isArray(root) ? root : listKey === null ? [root] : (root[listKey] as Members[])
  const slices = findItemSlices(Buffer.from(text), listKey, list.length)!
  const length = list.length * slicesPerItem
  assert.deepEqual(outline.slices.slice(0, length), slices.slice(0, length))
  return true
}

/** The parts of a request that its outline must have. */
function picked(root: unknown): unknown {
  if (Array.isArray(root)) return root.map(item => pickedFields(item as Members, itemNames))
  return pickedFields(root as Members, [...itemNames, ...envelopeNames])
}

function pickedFields(object: Members, names: readonly string[]): Members {
  return pick(object, names, (name, value) => {
    if (Array.isArray(value)) return value.map(item => pickedFields(item as Members, itemNames))
    if (name === 'properties' && isObject(value)) return pick(value, propertyNames, (_name, inner) => inner)
    return isObject(value) ? 'an object' : value
  })
}

function pick(object: Members, names: readonly string[], as: (name: string, value: unknown) => unknown): Members {
  const held = names.filter(name => Object.hasOwn(object, name) && object[name] !== undefined)
  return Object.fromEntries(held.map(name => [name, as(name, object[name])]))
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const blanks = fc.constantFrom('', '', '', '', ' ', '\n', '\t', ' \r\n ')
const numbers = ['0', '-0', '1.0', '1e2', '-1.5E+3', '2E-7', '12345678901234567890', '1e400', '23']
const strings = ['', 'ada', 'é', '😀', '\\"', '\\\\', '\\/', '\\n', '\\u00e9', '\\ud83d\\ude00', '\\u0000', '\u007f']
const scalar = fc.oneof(
  fc.constantFrom('null', 'true', 'false', ...numbers),
  fc.array(fc.constantFrom(...strings), { maxLength: 3 }).map(pieces => `"${pieces.join('')}"`),
)
const otherKeys = [
  '$set_one',
  'propertie',
  'event_',
  '__proto__',
  'constructor',
  '',
  'a\\/b',
  'é',
  'pr\\u00e9nom',
  'batches',
]

/** A character that keys are written with as `\u…`; none for the empty text. */
const escapedInKeys = fc.constantFrom('', '', '', '$', 't', 'd')

function spellKey(key: string, escaped: string): string {
  return escaped === '' ? key : key.replace(escaped, `\\u00${escaped.charCodeAt(0).toString(16)}`)
}

function objectText(
  names: readonly string[],
  valueTextOf: (name: string) => fc.Arbitrary<string>,
): fc.Arbitrary<string> {
  const member = fc.constantFrom(...names, ...otherKeys).chain(name =>
    fc
      .tuple(blanks, escapedInKeys, blanks, blanks, valueTextOf(name), blanks)
      .map(([before, escaped, a, b, value, after]) => ({
        name,
        text: `${before}"${spellKey(name, escaped)}"${a}:${b}${value}${after}`,
      })),
  )
  const members = fc.uniqueArray(member, { maxLength: 6, selector: ({ name }) => name })
  return fc.oneof(
    { weight: 5, arbitrary: members.map(all => `{${all.map(({ text }) => text).join()}}`) },
    { weight: 1, arbitrary: blanks.map(between => `{${between}}`) },
  )
}

function listText(element: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(blanks, fc.array(element, { maxLength: 4 }), blanks)
    .map(([a, items, b]) => `[${a}${items.join()}${b}]`)
}

const anyValue = fc.letrec<{ value: string }>(tie => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    listText(tie('value')),
    objectText(['a', 'token', 'distinct_id'], () => tie('value')),
  ),
})).value
const properties = objectText(propertyNames, name =>
  (propertyNames as readonly string[]).includes(name) ? scalar : anyValue,
)
const mapNames = ['properties', '$set', '$set_once']
const item = objectText(itemNames, name => {
  if (mapNames.includes(name))
    return fc.oneof(
      { weight: 4, arbitrary: properties },
      {
        weight: 1,
        arbitrary: fc.oneof(
          scalar,
          blanks.map(between => `[${between}]`),
        ),
      },
    )
  return (itemNames as readonly string[]).includes(name) ? scalar : anyValue
})
const envelope = objectText([...itemNames, ...envelopeNames], name => {
  if (name === 'batch') return listText(item)
  if (mapNames.includes(name)) return properties
  return ([...itemNames, ...envelopeNames] as readonly string[]).includes(name) ? scalar : anyValue
})
const request = fc
  .tuple(blanks, fc.oneof(listText(item), envelope, item), blanks)
  .map(([before, text, after]) => before + text + after)

describe('readRequestOutline', () => {
  it('returns the same as JSON.parse and a search for the items, for every request', () => {
    fc.assert(
      fc.property(request, text => assert.ok(agrees(text), text)),
      { numRuns: runs(600, 3_000) },
    )
  })
  it('never accepts a text that JSON.parse refuses, and never misreads an invalid text', t => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const random = seededRandom(seed)
    const pieces = [
      ...'{}[],:"\\-+.0123456789eEtruefalsn \t\n\r\0\x1f\u007fé',
      '\\u',
      '\\ud800',
      '\\udc00',
      '""',
      '//',
      '\ufeff',
    ]
    const texts = fc.sample(request, { numRuns: 500, seed })
    let outlined = 0
    for (const text of texts) {
      for (let times = 0; times < 40; times++) {
        const at = Math.floor(random() * (text.length + 1))
        const until = Math.min(text.length, at + Math.floor(random() * 3))
        const put = random() < 0.3 ? '' : pieces[Math.floor(random() * pieces.length)]!
        const broken = random() < 0.1 ? text.slice(0, at) : text.slice(0, at) + put + text.slice(until)
        if (!broken.isWellFormed()) continue
        try {
          if (agrees(broken)) outlined++
        } catch (cause) {
          throw new Error(`SEED=${seed}: ${JSON.stringify(broken)}`, { cause })
        }
      }
    }
    assert.ok(outlined > 1_000, `${outlined} of them are JSON`)
  })
  it('finds the members that concern visitors at the same positions as a search of the whole text', () => {
    const others = objectText([...visitorNames, '$lib'], name => (name === '$distinct_id' ? scalar : anyValue))
    let told = 0
    fc.assert(
      fc.property(others, blanks, (other, blank) => {
        const text = other.replace('{', '{"$cookieless_mode":true,')
        const before = `${blank}{"event":"e","properties":`
        const outline = outlineOfText(`${before}${text}}`)
        const members = outline && visitorMembersOf((outline.root as { properties: object }).properties)
        if (members === null || members === undefined) return
        told++
        assert.deepEqual(readVisitor(text, members), readVisitor(text))
      }),
      { numRuns: 1_000 },
    )
    assert.ok(told > 100, `of ${told}`)
  })
  it('reads requests as SDKs send them, in plain ASCII or not', () => {
    for (const title of ['Running shoes', 'Løpesko 😀', 'a "b" \\ c']) {
      const batch = Array.from({ length: 50 }, (_, index) => ({
        event: title,
        distinct_id: index,
        properties: { title },
      }))
      assert.ok(agrees(JSON.stringify({ api_key: 'k', batch, sent_at: '2026-11-01T00:00:00Z' })))
    }
  })
  it('leaves unusual requests to JSON.parse', () => {
    const unusual = [
      '5',
      '{"event":["e"]}',
      '{"event":"e","properties":[1]}',
      '{"event":"e","properties":{"token":{}}}',
      '{"batch":[],"data":[]}',
      '{"batch":[],"batch":[]}',
      '{"event":"e","event":null}',
      '{"event":"e","properties":{"token":null,"token":"k"}}',
      '{"batch":[5]}',
      '["e"]',
      '{"event":"\\ud800"}',
      '{"event":"e"} {}',
    ]
    for (const text of unusual) assert.equal(outlineOfText(text), null, text)
    assert.equal(outlineOfText('[{},{},{}]', 2), null)
  })
  it('gives up on a repeated list instead of allocating space for each repetition', () => {
    const text = `{"api_key":"k",${'"batch":[{}],'.repeat(20_000)}"batch":[]}`
    const outline = () => outlineOfText(text)
    assert.ok(takesAtMost(2, outline, () => JSON.parse(text)))
  })
  it('leaves values that are nested too deeply to JSON.parse, at any depth', () => {
    const nested = (depth: number) => `[{"properties":{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}}]`
    assert.ok(agrees(nested(nestingDepthMax)))
    for (const depth of [nestingDepthMax + 1, 1_000_000]) assert.equal(outlineOfText(nested(depth)), null)
  })
})
