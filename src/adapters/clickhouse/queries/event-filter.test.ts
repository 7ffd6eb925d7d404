import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseJson } from '#core/json.ts'
import type { EventQuery } from '#ports/events/event-queries.ts'
import { buildEventFilter } from './event-filter.ts'
import { storedColumns, toEventView, viewColumns } from './event-rows.ts'

const uuid = '01234567-89ab-4cde-8f01-23456789abcd'
const ofProject = 'project_id = {project:UInt32}'
const time = (name: string) => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
const query = (over: Partial<EventQuery>) => buildEventFilter({ projectId: 1, descending: true, ...over })

describe('the filter of a list of events', () => {
  it('consists of the project and the requested conditions', () => {
    const cases: [name: string, asked: Partial<EventQuery>, key: string[], others: string[], params: object][] = [
      ['nothing', {}, [], [], {}],
      ['a name', { event: '' }, ['event = {event:String}'], [], { event: '' }],
      ['an id', { distinctId: "a' OR 1" }, ['distinct_id = {id:String}'], [], { id: "a' OR 1" }],
      ['a uuid', { uuid }, ['uuid = {uuid:UUID}'], [], { uuid }],
      [
        'a time at which it begins, whose day has other copies',
        { afterMs: -1 },
        [`toDate32(timestamp) >= toDate32(${time('after')})`],
        [`timestamp > ${time('after')}`],
        { after: -1 },
      ],
      [
        'a time before which it ends, whose day has other copies',
        { beforeMs: 0 },
        [`toDate32(timestamp) <= toDate32(${time('before')})`],
        [`timestamp < ${time('before')}`],
        { before: 0 },
      ],
      [
        'a place that newer ones lie before',
        { after: { timestampMs: 5, uuid, tieBreak: '18446744073709551615' } },
        [`toDate32(timestamp) <= toDate32(${time('from')})`],
        [
          `timestamp <= ${time('from')}`,
          `(timestamp, uuid, sipHash64(event, distinct_id)) < (${time('from')}, {from_uuid:UUID}, {from_tie:UInt64})`,
        ],
        { from: 5, from_uuid: uuid, from_tie: '18446744073709551615' },
      ],
      [
        'a place that older ones lie before',
        { descending: false, after: { timestampMs: 5, uuid, tieBreak: '0' } },
        [`toDate32(timestamp) >= toDate32(${time('from')})`],
        [
          `timestamp >= ${time('from')}`,
          `(timestamp, uuid, sipHash64(event, distinct_id)) > (${time('from')}, {from_uuid:UUID}, {from_tie:UInt64})`,
        ],
        { from: 5, from_uuid: uuid, from_tie: '0' },
      ],
    ]
    for (const [name, asked, key, others, params] of cases) {
      const filter = query(asked)
      const keyConditions = [ofProject, ...key]
      assert.deepEqual(
        filter,
        {
          conditions: [...keyConditions, ...others],
          keyConditions,
          personId: undefined,
          params: { project: 1, ...params },
        },
        name,
      )
    }
    assert.equal(query({ personId: uuid })?.personId, uuid)
  })

  it('compares a property with each text that the engine may write for its value', () => {
    for (const [json, texts] of [
      ['"1.0"', ['1.0']],
      ['""', ['']],
      ['null', ['null']],
      ['true', ['true']],
      ['1.0', ['1.0', '1']],
      ['1e21', ['1e21', '1e+21']],
      ['-0', ['-0.0', '-0', '0']],
      ['-0.0', ['-0.0', '-0', '0']],
      ['12345678901234567890', ['12345678901234567890', '12345678901234567000']],
      ['[1, "a"]', ['[1,"a"]']],
    ] as const) {
      const filter = query({
        properties: [
          { key: "k'", value: parseJson(json) },
          { key: 'second', value: 'x' },
        ],
      })!
      assert.equal(filter.params.key0, "k'")
      const sent = new Set(filter.params.texts0 as string[])
      for (const text of texts) assert.ok(sent.has(text), `${json} as ${text}`)
      assert.deepEqual([filter.params.key1, filter.params.texts1], ['second', ['x']])
      assert.equal(filter.conditions.length, 3)
      for (const index of [0, 1])
        assert.match(
          filter.conditions[1 + index]!,
          new RegExp(`\\{key${index}:String\\}.*IN \\{texts${index}:Array\\(String\\)\\}`, 's'),
        )
    }
  })

  it('matches nothing if an id or a position is malformed', () => {
    const place = { timestampMs: 5, uuid, tieBreak: '0' }
    for (const asked of [
      { uuid: 'x' },
      { uuid: '' },
      { personId: `${uuid}0` },
      { after: { ...place, uuid: 'x' } },
      { after: { ...place, tieBreak: '' } },
      { after: { ...place, tieBreak: '-1' } },
      { after: { ...place, tieBreak: '1e3' } },
      { after: { ...place, tieBreak: '123456789012345678901' } },
    ])
      assert.equal(query(asked), null, JSON.stringify(asked))
  })
})

describe('the columns of a displayed event', () => {
  const columns = viewColumns.split(/,\s*/).map(column => column.replace(/^\w+\((\w+)\)$/, '$1'))

  it('match the fields of a row, in the same order', () => {
    const row = columns.map((column, index) => (/_at$|^timestamp$/.test(column) ? String(2 ** 53 - index) : column))
    const view = toEventView(row as unknown as Parameters<typeof toEventView>[0])
    const snake = (name: string) =>
      name
        .replace(/Ms$/, '')
        .replace(/Json$/, '')
        .replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
    for (const [name, value] of Object.entries(view)) {
      const place = columns.findIndex(column => column === snake(name) || (name === 'personId' && column === 'person'))
      assert.notEqual(place, -1, name)
      // A server may write 64-bit numbers as text.
      assert.equal(String(value), row[place], name)
    }
    assert.equal(Object.keys(view).length, columns.length)
  })

  it('are read from stored columns, except for the current person', () => {
    const stored = new Set(storedColumns.split(/,\s*/))
    assert.deepEqual(
      columns.filter(column => !stored.has(column)),
      ['person'],
    )
  })
})
