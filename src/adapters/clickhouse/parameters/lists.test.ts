import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { encodeIdentities } from './encoded-lists.ts'
import { splitIntoLists } from './split-into-lists.ts'

describe('a list that is sent in several fields', () => {
  it('is complete and in order, and starts another field when the next item would not fit', () => {
    const cases: [lengths: number[], max: number, expected: number[][]][] = [
      [[], 10, []],
      [[0], 0, [[0]]],
      [[10], 10, [[10]]],
      [[11], 10, [[11]]],
      [[4, 6], 10, [[4, 6]]],
      [[4, 7], 10, [[4], [7]]],
      [[11, 1, 12, 1], 10, [[11], [1], [12], [1]]],
      [
        [5, 5, 5, 5],
        10,
        [
          [5, 5],
          [5, 5],
        ],
      ],
      [[0, 0, 10, 0], 10, [[0, 0, 10, 0]]],
    ]
    for (const [lengths, max, expected] of cases)
      assert.deepEqual(
        splitIntoLists(lengths, length => length, max),
        expected,
        String(lengths),
      )
    const long = 'x'.repeat(20_000)
    assert.deepEqual(
      splitIntoLists([long, long, long], text => text.length).map(list => list.length),
      [2, 1],
    )
  })
})

describe('identities in a query', () => {
  const uuid = '01234567-89ab-4cde-8f01-23456789abcd'
  const identity = { projectId: 1, timestampMs: 0, event: 'e', distinctId: 'ada', uuid }
  const sent = (params: Record<string, unknown>) =>
    Object.values(params).flatMap(text => JSON.parse(Buffer.from(String(text), 'base64').toString()))

  it('consist of the UTC day and of the texts exactly as they are stored', () => {
    for (const [over, expected] of [
      [{}, [1, 0, 'e', 'ada', uuid]],
      [{ timestampMs: 86_399_999 }, [1, 0, 'e', 'ada', uuid]],
      [{ timestampMs: 86_400_000 }, [1, 1, 'e', 'ada', uuid]],
      [{ timestampMs: -1 }, [1, -1, 'e', 'ada', uuid]],
      [{ event: '\'"\\\0\n', distinctId: '🏴' }, [1, 0, '\'"\\\0\n', '🏴', uuid]],
      [{ event: '\ud800', distinctId: 'a\udc00b' }, [1, 0, '\ufffd', 'a\ufffdb', uuid]],
    ] as const)
      assert.deepEqual(sent(encodeIdentities([{ ...identity, ...over }]).params), [expected])
  })

  it('fill as many fields as they need, each within the server’s limit', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 30_000 }), { minLength: 1, maxLength: 12 }), lengths => {
        const identities = lengths.map((length, index) => ({
          ...identity,
          event: 'é'.repeat(length),
          projectId: index,
        }))
        const { params, prewhere, where, distinctIds } = encodeIdentities(identities)
        assert.deepEqual(
          sent(params).map(([project, , event]) => [project, event.length]),
          lengths.map((length, index) => [index, length]),
        )
        for (const [name, text] of Object.entries(params)) {
          assert.ok(String(text).length < 128 * 1024)
          for (const sql of [prewhere, where, distinctIds]) assert.ok(sql.includes(`{${name}:String}`))
        }
      }),
      { numRuns: 20 },
    )
  })
})
