import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { jobOf, outcomesOf, rejectsOf, resultsOf, type TestJob } from '../../../tests/support/import-job.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { addRetry } from './retried-records.ts'

const mapping = { event: 'event', distinct_id: 'user', timestamp: 'at' }
const csv = `event,user,at,note
Paid,u-1,2024-05-01T12:00:00Z,
"Paid, ""late""",,2024-05-01T12:00:00Z,
Paid,u-3
`

describe('a rejected row of CSV', () => {
  it('lists its cells, including empty ones, or its columns if the number of cells does not match', async t => {
    const { rejects } = await rehearsed(t)
    const [missing, short] = rejects
    assert.equal(missing!.source, '"Paid, ""late""",,2024-05-01T12:00:00Z,')
    assert.deepEqual(missing!.record, { event: 'Paid, "late"', user: '', at: '2024-05-01T12:00:00Z', note: '' })
    assert.equal(missing!.columns, undefined)
    assert.deepEqual([short!.record, short!.columns], [undefined, ['event', 'user', 'at', 'note']])
  })

  it('lists the columns only once per file, and is sent once its text is repaired', async t => {
    const { job, rejects } = await rehearsed(t, `event,user,at,note\n${'Paid,u-3\n'.repeat(3)}`)
    const columns = ['event', 'user', 'at', 'note']
    assert.deepEqual(
      rejects.map(reject => reject.columns),
      [columns, undefined, undefined],
    )
    const source = 'Paid,u-3,2024-05-01T12:00:00Z,'
    // Files that list them in each line are read too.
    const repaired = [
      { ...rejects[1]!, source },
      { ...rejects[2]!, columns, source },
    ]
    const [atOnce] = await rightAtOnce(t, source)
    assert.deepEqual((await retry(t, job, repaired))[0], atOnce)
    assert.deepEqual((await retry(t, job, repaired.slice(1)))[0], atOnce)
  })

  it('yields, after its cells are repaired, the same events as a row that never had the error', async t => {
    const { job, rejects } = await rehearsed(t)
    const [missing] = rejects
    const [retried] = await retry(t, job, [{ ...missing!, record: { ...missing!.record, user: 'u-2' } }])
    const [atOnce] = await rightAtOnce(t, '"Paid, ""late""",u-2,2024-05-01T12:00:00Z,')
    assert.deepEqual(retried, atOnce)
  })

  it('yields the same events after its text is repaired as a row without the error', async t => {
    const { job, rejects } = await rehearsed(t)
    const repaired = ['"Paid, ""late""",u-2,2024-05-01T12:00:00Z,', 'Paid,u-3,2024-05-01T12:00:00Z,']
    const outcomes = await retry(
      t,
      job,
      rejects.map((reject, index) => ({ ...reject, source: repaired[index]! })),
    )
    assert.deepEqual(outcomes, [...(await rightAtOnce(t, repaired[0]!)), ...(await rightAtOnce(t, repaired[1]!))])
  })

  it('is read with the delimiter of its file', async t => {
    const text = 'event;user;at;note\nPaid;;2024-05-01T12:00:00Z;1,5\n'
    const { job, rejects } = await rehearsed(t, text)
    const repaired = { ...rejects[0]!, source: 'Paid;u-2;2024-05-01T12:00:00Z;1,5' }
    const [retried] = await retry(t, job, [repaired])
    assert.partialDeepStrictEqual(retried, { kind: 'events', events: [{ properties: { note: '1,5' } }] })
  })

  it('counts as a record of its own next to an identical row if identical records are kept', async t => {
    const row = 'Paid,u-1,2024-05-01T12:00:00Z,'
    const { job, rejects } = await rehearsed(t, `event,user,at,note\n${row}\nPaid,,2024-05-01T12:00:00Z,\n`, {
      keep_identical: true,
    })
    const retried = await retry(t, job, [{ ...rejects[0]!, record: { ...rejects[0]!.record, user: 'u-1' } }])
    const atOnce = await rehearsed(t, `event,user,at,note\n${row}\n${row}\n`, { keep_identical: true })
    assert.deepEqual(retried, (await resultsOf(atOnce.job)).results.map(withoutNotes).slice(1))
  })

  it('is rejected again for the same reason if nothing was repaired', async t => {
    const { job, rejects } = await rehearsed(t)
    assert.deepEqual(
      (await retry(t, job, rejects)).map(result => result.kind === 'rejected' && result.reason),
      ['distinct_id_missing', 'csv_column_count'],
    )
  })
})

async function rehearsed(t: TestContext, text = csv, config: JsonObject = {}) {
  const job = jobOf(t, { 'raw.csv': text }, generic, { config: { mapping, ...config } })
  await job.report()
  return { job, rejects: rejectsOf(job) }
}

async function retry(t: TestContext, { folder, plan, manifest, source }: TestJob, records: readonly object[]) {
  const fixed = join(tempDir(t), 'fixed.jsonl')
  writeFileSync(fixed, records.map(record => `${JSON.stringify(record)}\n`).join(''))
  const { job } = addRetry({ folder, plan, manifest, source }, fixed)
  return (await outcomesOf(job)).map(({ result }) => withoutNotes(result))
}

async function rightAtOnce(t: TestContext, row: string) {
  const { job } = await rehearsed(t, `event,user,at,note\n${row}\n`)
  return (await resultsOf(job)).results.map(withoutNotes)
}

type Result = Awaited<ReturnType<typeof outcomesOf>>[number]['result']

function withoutNotes(result: Result): { readonly kind: string; readonly reason?: string; readonly events?: unknown } {
  return result.kind === 'events' ? { kind: 'events', events: result.events as unknown as JsonObject[] } : result
}
