// A person may have tens of thousands of properties; an event that changes one of them must not cost as much as all.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { runs } from '../../../tests/support/nightly.ts'
import { anEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { JsonObject } from '../json.ts'

const wide = (bytes: number, textOf = (n: number) => `v${n % 13}`): JsonObject => {
  const properties: JsonObject = {}
  for (let n = 0, taken = 0; taken < bytes; n++) {
    properties[`p${n}`] = textOf(n)
    taken += `"p${n}":"${textOf(n)}",`.length
  }
  return properties
}

describe('a large person', () => {
  for (const [what, nested] of [
    ['of plain values', {} as JsonObject],
    ['with objects among its values', { o: { c: 1 }, list: [{ x: '{"c":1,"c":2}' }] } as JsonObject],
  ] as const)
    it(`${what} is serialized once per chunk, not once per event that sets one of its properties`, async t => {
      const world = aWorld()
      await world.apply(anEvent('$set', 'big', { $set: { ...wide(600_000), ...nested, c: -1 } }))
      const { stringify } = JSON
      let written = 0
      t.mock.method(JSON, 'stringify', (...args: Parameters<typeof stringify>) => {
        const text = stringify(...args)
        written += text?.length ?? 0
        return text
      })
      const cpuBefore = process.threadCpuUsage()
      await world.apply(...Array.from({ length: 15 }, (_, n) => anEvent('t', 'big', { $set: { c: n } })))
      const cpu = process.threadCpuUsage(cpuBefore)
      t.mock.restoreAll()
      t.diagnostic(`${written} characters written, ${(cpu.user + cpu.system) / 1_000} ms of CPU`)
      assert.ok(written < 4 * 600_000, `${written} characters`)
      assert.deepEqual(
        world.rows.slice(-15).map(row => JSON.parse(row.personPropertiesJson).c),
        Array.from({ length: 15 }, (_, n) => n),
      )
      assert.equal(world.rows.at(-1)!.personPropertiesJson, JSON.stringify(world.person('big')!.properties))
    })

  it('ends with the same properties and rows whether its events share a chunk or not', async () => {
    const key = fc.constantFrom('p1', 'p2', 'n', '"n":', '7', '__proto__', 'b{', 'nested', '$current_url', '$browser')
    const value = fc.oneof(
      fc.constantFrom<JsonObject[string]>(
        1,
        12,
        'p1',
        '{',
        { p1: 1, n: 2 },
        [',"n":', { n: 1 }],
        null,
        ',"p1":1',
        'x'.repeat(660_000),
      ),
      fc.string(),
    )
    const bag = fc.dictionary(key, value, { maxKeys: 4 })
    const change = fc.record(
      {
        $set: bag,
        $set_once: bag,
        $unset: fc.array(key, { maxLength: 2 }),
        name: fc.constantFrom('$set', 'e', '$pageview'),
        alias: fc.constantFrom('other', 'third'),
      },
      { requiredKeys: ['name'] },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 2, maxLength: 8 }), async changes => {
        const first = ['big', 'other'].map(id => anEvent('$set', id, { $set: wide(5_000, n => `${id}${n % 7}`) }))
        const events = changes.map(({ name, alias, ...properties }) =>
          alias === undefined
            ? anEvent(name, 'big', { ...properties })
            : anEvent('$merge_dangerously', 'big', { ...properties, alias }),
        )
        const [together, apart] = [aWorld(), aWorld()]
        await together.apply(...first)
        await together.apply(...events)
        for (const event of [...first, ...events]) await apart.apply(event)
        const shown = ({ rows }: typeof apart) => rows.map(row => row.personPropertiesJson)
        assert.deepEqual(shown(together), shown(apart))
        const [person, expected] = [together.person('big')!, apart.person('big')!]
        assert.equal(JSON.stringify(person.properties), JSON.stringify(expected.properties))
        assert.deepEqual([person.marks, person.version], [expected.marks, expected.version])
      }),
      { numRuns: runs(40, 300) },
    )
  })
})
