import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import type { ImportSource } from '#importer/records/import-source.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { jobOf, StopSwitch, type TestJob, type TestJobOptions } from '../../../tests/support/import-job.ts'
import { segment } from '../sources/segment/segment.ts'
import type { ImportReport } from './report/import-report.ts'

const mapping = { event: 'event', distinct_id: 'user', timestamp: 'at' }
const record = { event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' }
const csv = `event,user,at,Order ID,Amount,Company,Plan,Note
Paid,u-1,2024-05-01T12:00:00Z,1,12,acme,pro,
Left,u-2,2024-05-02T12:00:00Z,2,3,acme,pro,x
`

describe('warnings about names that no record has', () => {
  it('name each such field of the mapping, with the field that was probably meant', async t => {
    const given = {
      ...mapping,
      uuid: 'OrderID',
      types: { Amont: 'number' },
      groups: { company: 'Compny' },
      set: { plan: 'Plann' },
      omit: ['Nte'],
      filters: [{ field: 'Amoun', op: 'ne', value: '0' }],
      rename: { 'Order Id': 'order' },
      event_names: { Piad: '$paid', Left: 'Gone' },
    }
    const texts = await warned(t, csv, { mapping: given })
    assert.deepEqual(texts, [
      'The mapping names the field "OrderID" under uuid, but no record has it. Did you mean "Order ID"?',
      'The mapping names the field "Plann" under set.plan, but no record has it. Did you mean "Plan"?',
      'The mapping names the field "Compny" under groups.company, but no record has it. Did you mean "Company"?',
      'The mapping names the field "Amont" under types, but no record has it. Did you mean "Amount"?',
      'The mapping names the field "Amoun" under filters, but no record has it. Did you mean "Amount"?',
      'The mapping names the field "Order Id" under rename, but no record has it. Did you mean "Order ID"?',
      'The mapping names the field "Nte" under omit, but no record has it. Did you mean "Note"?',
      'event_names names the event "Piad", which no record has. Did you mean "Paid"?',
    ])
  })

  it('are not given for a name that a single record has, even one without an event', async t => {
    const given = {
      ...mapping,
      uuid: ['id', 'other_id'],
      distinct_id: ['user', 'member'],
      properties: 'props',
      types: { 'props.amount': 'number' },
      rename: { amount: 'Amount' },
      set: { plan: 'person.plan' },
      omit: ['secret'],
      filters: [{ field: 'kind', op: 'ne', value: 'test' }],
      event_names: { Paid: 'Bought', Tested: 'Tried' },
    }
    const lines = [
      { ...record, id: 'a' },
      { ...record, other_id: 'b', props: '{"amount":"1"}' },
      { ...record, id: 'a', person: { plan: 'pro' } },
      { event: 'Tested', member: null, secret: 1, kind: 'test' },
    ]
    assert.deepEqual(await warned(t, lines, { mapping: given }), [])
  })

  it('suggest fields in the same object as the missing field', async t => {
    const given = { ...mapping, set: { plan: 'person.plann' }, omit: ['person.plan'] }
    assert.deepEqual(await warned(t, [{ ...record, person: { plan: 'pro' } }], { mapping: given }), [
      'The mapping names the field "person.plann" under set.plan, but no record has it. Did you mean "person.plan"?',
      'The mapping names the field "person.plan" under omit, but no record has it as a separate field.',
    ])
  })

  it('are not given for a column without values', async t => {
    const text = 'event,user,at,note\nPaid,u-1,2024-05-01T12:00:00Z,\n'
    assert.deepEqual(await warned(t, text, { mapping: { ...mapping, set: { note: 'note' } } }), [])
  })

  it('are the same after the scan was stopped and continued', async t => {
    const records = ['x', undefined, undefined, undefined].map((id, index) => ({ ...record, user: `u-${index}`, id }))
    const config = { mapping: { ...mapping, anon_id: 'device', uuid: 'id' } }
    const stop = new StopSwitch()
    const job = jobOver(t, records, config, generic, { onRecord: stop.onRecord, sizes: { partBytes: 1 } })
    await job.stage()
    stop.left = 3
    await assert.rejects(job.scan(), /stopped here/)
    await job.scan()
    assert.deepEqual(warningsOf(await job.rehearse()), [
      'The mapping names the field "device" under anon_id, but no record has it.',
    ])
  })

  it('cover event_names in the configuration of any source', async t => {
    const message = { type: 'track', event: 'Paid', userId: 'u', messageId: 'm', timestamp: record.at }
    const config = { event_names: { Payd: 'Bought', Paid: 'Bought' } }
    assert.deepEqual(await warned(t, [message], config, segment), [
      'event_names names the event "Payd", which no record has. Did you mean "Paid"?',
    ])
  })

  it('are not given if no record can be read', async t => {
    assert.deepEqual(warningsOf(await jobOf(t, ['{"event":\n'], generic, { config: { mapping } }).report()), [])
  })

  it('are limited in number', async t => {
    const types = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`other field ${index}`, 'text']))
    const texts = await warned(t, [record], { mapping: { ...mapping, types } })
    assert.deepEqual([texts.length, texts.at(-1)], [51, 'No record has 10 more names of the mapping.'])
  })
})

/** @param file the text of a CSV file, or records. @returns the warnings of a rehearsal. */
async function warned(...[t, file, config, source, options]: Parameters<typeof jobOver>): Promise<readonly string[]> {
  return warningsOf(await jobOver(t, file, config, source, options).report())
}

function warningsOf({ warnings }: ImportReport): readonly string[] {
  return warnings.filter(({ code }) => code.endsWith('_of_no_record')).map(({ text }) => text)
}

function jobOver(
  t: TestContext,
  file: string | readonly object[],
  config: JsonObject,
  source: ImportSource = generic,
  options: TestJobOptions = {},
): TestJob {
  const name = typeof file === 'string' ? 'raw.csv' : 'raw.jsonl'
  return jobOf(t, { [name]: file }, source, { config, ...options })
}
