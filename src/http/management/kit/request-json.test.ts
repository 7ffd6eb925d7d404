import assert from 'node:assert/strict'
import { it } from 'node:test'
import Type from 'typebox'
import { flagEntryCountMax } from '#core/flags/definitions/validate-flag.ts'
import { createBodyParser } from './request-json.ts'

const schema = Type.Object({ filters: Type.Optional(Type.Unknown()) })
const parse = createBodyParser(schema, null, { jsonBytesMax: 1024 * 1024, takesForms: true })

it('a body with tens of thousands of fields or too many values is refused before it is parsed', async t => {
  const keys = `{${Array.from({ length: 40_000 }, (_, index) => `"k${index}":1`)}}`
  const parses = t.mock.method(JSON, 'parse').mock
  for (const text of [
    keys,
    `{"filters":${keys}}`,
    `{"filters":[${Array(40_000).fill('{}')}]}`,
    `{"filters":[${Array(140_000).fill('-0')}]}`,
  ]) {
    const parsed = await parse(Buffer.from(text), 'application/json')
    assert.ok(!parsed.ok)
    assert.deepEqual([parsed.error.status, parsed.error.code], [413, 'payload_too_large'])
  }
  assert.equal(parses.callCount(), 0)
})

it('a flag with the maximum number of filters is accepted, and so is a long list of values', async () => {
  const filter = '{"key":"a","type":"person","operator":"exact","value":["b"]}'
  const filters = `{"groups":[{"properties":[${Array(flagEntryCountMax - 1).fill(filter)}]}]}`
  const values = `[${Array(100_000).fill('12')}]`
  for (const text of [filters, values]) assert.ok((await parse(Buffer.from(`{"filters":${text}}`), '')).ok)
})
