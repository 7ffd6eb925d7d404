import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { fieldOf } from '../support/fields-of.ts'
import { allScopesKey, startManagement } from '../support/management-api.ts'
import { download } from '../support/raw-download.ts'
import { aMapping, aPerson, created } from '../support/values.ts'

const path = '/api/projects/1/persons/export/'
const headers = { authorization: `Bearer ${allScopesKey}` }
const uuid = (last: number) => `0195a000-0000-7000-8000-${String(last).padStart(12, '0')}`
const linesOf = (bytes: Buffer) =>
  bytes
    .toString()
    .trimEnd()
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))

describe('an export of persons', () => {
  const persons = Array.from({ length: 450 }, (_, index) =>
    aPerson({
      uuid: uuid(index),
      properties: { n: index, text: 'x'.repeat((index % 40) * 400), 'naïve, "key"': 'a\nb' },
    }),
  )
  const mappings = [
    ...persons.slice(1).map((person, index) => aMapping(person, `user ${index + 1}`)),
    ...Array.from({ length: 250 }, (_, index) => aMapping(persons[0]!, `device ${index}`)),
  ]
  const seed = { persons: persons.map(created), mappings: mappings.map(created) }

  it('has each person once, newest first, with all distinct ids, and can resume after any of them', async t => {
    const api = await startManagement(t)
    await api.commit(seed)
    const whole = await download(`${api.url}${path}`, headers)
    assert.deepEqual([whole.status, whole.isComplete], [200, true])
    const lines = linesOf(whole.bytes)
    assert.deepEqual(fieldOf(lines, 'uuid'), persons.map(person => person.uuid).toReversed())
    const { distinct_ids, properties, is_identified, created_at, version, name } = lines.at(-1)
    assert.deepEqual(
      distinct_ids.toSorted(),
      mappings
        .slice(449)
        .map(({ distinctId }) => distinctId)
        .sort(),
    )
    assert.deepEqual(properties, persons[0]!.properties)
    const first = persons[0]!
    assert.deepEqual(
      [is_identified, created_at, version, name],
      [first.isIdentified, new Date(first.createdAtMs).toISOString(), first.version, distinct_ids[0]],
    )
    for (const at of [0, 199, 200, 448]) {
      const rest = await download(`${api.url}${path}?cursor=${lines[at].cursor}`, headers)
      assert.deepEqual(linesOf(rest.bytes), lines.slice(at + 1))
    }
    const some = await download(`${api.url}${path}?limit=10`, headers)
    assert.deepEqual(
      [linesOf(some.bytes), some.trailers['pennon-export-count'], some.trailers['pennon-export-next']],
      [lines.slice(0, 10), '10', lines[9].cursor],
    )
  })

  it('accepts the filters of the list, and reports invalid filters as errors', async t => {
    const api = await startManagement(t)
    await api.commit(seed)
    const found = async (query: Record<string, string>) => {
      const answered = await download(`${api.url}${path}?${new URLSearchParams(query)}`, headers)
      return answered.status === 200 ? linesOf(answered.bytes).map(line => line.uuid) : answered.status
    }
    assert.deepEqual(await found({ distinct_id: 'device 7' }), [uuid(0)])
    assert.deepEqual(await found({ uuid: uuid(3) }), [uuid(3)])
    assert.deepEqual(await found({ search: '"n":44,' }), [uuid(44)])
    assert.deepEqual(await found({ distinct_id: "' OR '1'='1" }), [])
    assert.deepEqual(await found({ search: "%' OR 1=1 --" }), [])
    assert.equal(await found({ uuid: uuid(999) }), 404)
    for (const wrong of [{ cursor: '1 OR 1=1' }, { cursor: '0' }, { offset: '1' }, { email: '' }, { format: 'xml' }])
      assert.equal(await found(wrong as Record<string, string>), 400, JSON.stringify(wrong))
    assert.equal((await download(`${api.url}${path.replace('/1/', '/2/')}`, headers)).status, 404)
  })

  it('is aborted and reports the reason if the state fails midway', async t => {
    let pages = 0
    const api = await startManagement(t, {
      before: {
        listPersonsBelow: async () => {
          if (++pages > 1) throw new PortError('state', 'unavailable', new Error('gone'))
        },
      },
    })
    await api.commit(seed)
    const { isComplete, bytes } = await download(`${api.url}${path}`, headers)
    assert.equal(isComplete, false)
    const last = linesOf(bytes).at(-1)
    assert.equal(last.export_error.code, 'state_unavailable')
    assert.equal(last.export_error.cursor, linesOf(bytes).at(-2).cursor)
  })

  it('has one CSV row per person, with the same fields', async t => {
    const api = await startManagement(t)
    const [ada] = [aPerson({ uuid: uuid(1), properties: { email: 'ada@example.org', 'q"': 'a,b\n' } })]
    await api.commit({ persons: [created(ada)], mappings: [created(aMapping(ada, 'a,"da"', 2))] })
    const { bytes } = await download(`${api.url}${path}?format=csv`, headers)
    const [head, ...rest] = bytes.toString().split('\r\n')
    assert.equal(
      head,
      'cursor,uuid,name,distinct_ids,properties,created_at,is_identified,version,distinct_id_versions,flag_overrides',
    )
    const expected = [
      ...['1', uuid(1), 'ada@example.org', '"[""a,\\""da\\""""]"'],
      ...['"{""email"":""ada@example.org"",""q\\"""":""a,b\\n""}"', new Date(ada.createdAtMs).toISOString()],
      ...[String(ada.isIdentified), String(ada.version), '"{""a,\\""da\\"""":2}"', '[]'],
    ]
    assert.deepEqual(rest, [expected.join(','), ''])
  })
})
