import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { JobPaused } from '#importer/job/job-paused.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import { isGeneratedPart, type StagedPart } from '#importer/job/staged-part.ts'
import { readCheckpoint, sumSendCounts } from '#importer/send/checkpoint.ts'
import { runSendStage, type SendOptions, TooManyRefused } from '#importer/send/send-stage.ts'
import { readSentRejects } from '#importer/send/sent-events.ts'
import { type BatchStandIn, startBatchStandIn } from '../support/batch-stand-in.ts'
import type { QuickClock } from '../support/fixed-clock.ts'
import { eventsOf, memoryStagedJob } from '../support/memory-staged-job.ts'
import { expectedKeys, sendOptions, storedKeys } from '../support/sending.ts'
import { silentProgress } from '../support/silent-progress.ts'
import { tempDir } from '../support/temp-dir.ts'

const job = memoryStagedJob({ seed: 7, days: 3, recordsPerDay: 400 })
const isLine = (line: number) => (event: { properties: object }) =>
  (event.properties as { line?: number }).line === line

async function prepare(t: TestContext, over: Partial<SendOptions> = {}) {
  const standIn = await startBatchStandIn(t)
  const options = sendOptions(tempDir(t), job, standIn.url, over)
  return { standIn, options, folder: options.folder, clock: options.clock as QuickClock }
}

async function assertWhole(standIn: BatchStandIn): Promise<void> {
  assert.deepEqual(storedKeys(standIn.taken), await expectedKeys(job))
}

describe('sending an import', () => {
  it('every event is sent once with the ids of the job: first groups, then links, then records by day', async t => {
    const { standIn, options } = await prepare(t)
    const checkpoint = await runSendStage(options)
    assert.ok(checkpoint.isSent)
    await assertWhole(standIn)
    const sent = standIn.taken.flatMap(({ events }) => events)
    assert.equal(sent.length, (await eventsOf(job)).length)
    const ranks = sent.map(({ event, timestamp }) =>
      event === '$groupidentify' ? '0' : event === '$identify' ? '1' : timestamp.slice(0, 10),
    )
    assert.deepEqual(ranks, ranks.toSorted())
    for (const { events, headers } of standIn.taken) {
      assert.equal(new Set(events.map(({ timestamp }) => timestamp.slice(0, 10))).size, 1)
      assert.equal(headers['x-import-job'], '7-secret')
    }
    const { $geoip_disable, historical_migration, analytics_source, $import_job_id } = sent[0]!.properties
    assert.deepEqual(
      [$geoip_disable, historical_migration, analytics_source, $import_job_id],
      [true, true, 'memory', '7'],
    )
    const counts = sumSendCounts(checkpoint.parts.map(each => each.counts))
    assert.equal(counts.read, counts.records + counts.skipped + counts.rejected + counts.collapsed)
    assert.equal(counts.sent, sent.length)
  })

  it('progress counts the records read, and generated events separately', async t => {
    const done: [unit: string, done: number, total: number | null][] = []
    const progress: StageProgress = {
      ...silentProgress,
      begin: (_, { records = null, unit = 'records' }) => done.push([unit, 0, records]),
      add: ({ records = 0 }) => {
        done.at(-1)![1] += records
      },
    }
    const { options } = await prepare(t, { progress, job: { ...job, blankLines: 3 } })
    await runSendStage(options)
    const countOf = (parts: readonly StagedPart[]) => parts.reduce((sum, part) => sum + part.records, 0)
    const generated = countOf(job.parts.filter(isGeneratedPart))
    const records = countOf(job.parts) - generated + 3
    assert.deepEqual(done, [
      ['groups and links', generated, generated],
      ['records', records, records],
    ])
  })

  it('a finished job sends nothing when it is started again', async t => {
    const { standIn, options } = await prepare(t)
    await runSendStage(options)
    const { requests } = standIn
    assert.ok((await runSendStage(options)).isSent)
    assert.equal(standIn.requests, requests)
  })

  it('the events of each person stay in order', async t => {
    const { standIn, options } = await prepare(t, { lanes: 5 })
    await runSendStage(options)
    const times = Map.groupBy(
      standIn.taken
        .flatMap(({ events }) => events)
        .filter(({ event }) => !event.startsWith('$identify') && !event.startsWith('$group')),
      ({ properties }) => properties.distinct_id,
    )
    for (const events of times.values()) {
      const order = events.map(({ properties: { day, line } }) => Number(day) * 1_000 + Number(line))
      assert.deepEqual(
        order,
        order.toSorted((a, b) => a - b),
      )
    }
  })

  it('a wait that the service asks for is reported and observed, and sending continues afterwards', async t => {
    const waits: (string | null)[] = []
    const notices: string[] = []
    const progress = {
      ...silentProgress,
      waiting: (reason: string | null) => void waits.push(reason),
      say: (line: string) => void notices.push(line),
    }
    const { standIn, options, clock } = await prepare(t, { progress, lanes: 1 })
    const faults = [
      { status: 429, headers: { 'retry-after': '7' } },
      { status: 503, headers: { 'retry-after': '1200' } },
      'cut' as const,
      { status: 500 },
      { status: 408 },
    ]
    standIn.fault = () => faults.shift() ?? null
    const checkpoint = await runSendStage(options)
    await assertWhole(standIn)
    assert.ok(waits.includes('the service asks to wait (429), 7 s'), waits.join('; '))
    assert.ok(waits.includes('the service asks to wait (503), 20 min'), waits.join('; '))
    assert.equal(waits.at(-1), null)
    assert.ok(clock.waits.reduce((sum, ms) => sum + ms, 0) >= 1_207_000)
    assert.match(notices.join(), /^WARNING: nothing could be sent for 21 min: no connection \(.+\)\. Nothing is lost/)
    assert.equal(checkpoint.retries, 5)
  })

  it('a batch whose answer was lost is sent again', async t => {
    const { standIn, options } = await prepare(t)
    let count = 0
    standIn.fault = () => (++count % 3 === 1 ? 'cut after taking' : null)
    await runSendStage(options)
    await assertWhole(standIn)
    assert.ok(standIn.taken.flatMap(({ events }) => events).length > (await eventsOf(job)).length)
  })

  it('an answer that does not account for all sent events is rejected', async t => {
    const { standIn, options } = await prepare(t)
    let portal = 3
    standIn.answer = () => (portal-- > 0 ? { body: { accepted: 0 } } : {})
    await runSendStage(options)
    await assertWhole(standIn)
    assert.ok(portal < 0)
  })

  it('the login page of a network is not mistaken for the answer of a service without jobs', async t => {
    const { standIn, options } = await prepare(t)
    let portal = 3
    standIn.fault = () => (portal-- > 0 ? { status: 200, body: '<html>Log in</html>' } : null)
    await runSendStage({ ...options, identity: { ...options.identity, serviceJobId: null }, secretJobId: null })
    await assertWhole(standIn)
    assert.ok(portal < 0)
  })

  it('batches that are too large for the service are halved', async t => {
    const { standIn, options } = await prepare(t)
    standIn.fault = ({ events }) => (events.length > 30 ? { status: 413 } : null)
    await runSendStage(options)
    await assertWhole(standIn)
  })

  it('the one event that the service refuses is found and stored with the reason, and all others are sent', async t => {
    const { standIn, options, folder } = await prepare(t)
    const isBad = isLine(123)
    standIn.fault = ({ events }) =>
      events.some(isBad)
        ? { status: 400, body: { code: 'bad_thing', detail: 'A bad thing.', attr: 'properties' } }
        : null
    const checkpoint = await runSendStage(options)
    const bad = (await eventsOf(job)).filter(isBad)
    const good = (await expectedKeys(job)).filter(key => !bad.some(({ uuid }) => key.startsWith(uuid)))
    assert.deepEqual(storedKeys(standIn.taken), good)
    const { id, counts } = checkpoint.parts.find(part => !isGeneratedPart(part))!
    const [reject] = readSentRejects(folder, id)
    const { fix, source_sha256: _, uuid, ...line } = reject!
    assert.deepEqual(line, {
      part: id,
      object: 'raw/0.jsonl',
      line: 123,
      byte: 12200,
      reason: 'server_refused:bad_thing',
      field: 'properties',
      detail: 'A bad thing.',
      source: '{"day":0,"line":123}',
      adapter: 'memory',
    })
    assert.match(fix, /import retry/)
    assert.equal(uuid, bad[0]!.uuid)
    assert.equal(counts.refused, bad.filter(({ properties }) => properties.day === 0).length)
    assert.equal(counts.read, counts.records + counts.skipped + counts.rejected + counts.collapsed)
  })

  it('events refused individually in an answer are stored as rejects', async t => {
    const { standIn, options } = await prepare(t)
    standIn.answer = ({ events }) => ({
      body: {
        failed_records: events.flatMap((each, index) =>
          isLine(5)(each) ? [{ index, uuid: each.uuid, reason: 'timestamp_invalid', field: 'timestamp' }] : [],
        ),
      },
    })
    const checkpoint = await runSendStage(options)
    const refused = sumSendCounts(checkpoint.parts.map(({ counts }) => counts)).refused
    assert.equal(refused, (await eventsOf(job)).filter(isLine(5)).length)
  })

  it('sending stops when the service accepts nothing, and everything is sent once the cause is fixed', async t => {
    const { standIn, options } = await prepare(t)
    standIn.fault = () => ({ status: 400, body: { code: 'import_closed', detail: 'The import is closed.' } })
    await assert.rejects(runSendStage(options), (error: Error) => {
      assert.ok(error instanceof TooManyRefused)
      // Whatever share is allowed, a service that accepts nothing stops sending.
      assert.equal(error.refused, error.events)
      assert.match(error.message, /accepted none of the first \d events: .*import_closed \(The import is closed\.\)/)
      return true
    })
    standIn.fault = () => null
    const checkpoint = await runSendStage(options)
    await assertWhole(standIn)
    assert.equal(sumSendCounts(checkpoint.parts.map(({ counts }) => counts)).refused, 0)
  })

  it('more refused events than the allowed share stop the run, and the next run sends these events again', async t => {
    const { standIn, options } = await prepare(t)
    standIn.fault = ({ events }) => (events.some(({ event }) => event === '$pageview') ? { status: 422 } : null)
    await assert.rejects(runSendStage(options), (error: Error) => {
      assert.ok(error instanceof TooManyRefused)
      assert.deepEqual([error.refused, error.events], [11, 1_000])
      assert.match(error.message, /refused 11 of 1000 events, more than --max-reject-share allows; the last: /)
      return true
    })
    standIn.fault = () => null
    await runSendStage(options)
    await assertWhole(standIn)
  })

  for (const status of [401, 403])
    it(`status ${status} stops sending at once`, async t => {
      const { standIn, options } = await prepare(t, { lanes: 1 })
      standIn.fault = () => ({ status, body: { detail: 'Who are you?' } })
      await assert.rejects(
        runSendStage(options),
        /does not accept the project's key: Who are you\?\. Check the key, and that the address/,
      )
      assert.equal(standIn.requests, 1)
    })

  it('an interrupt pauses sending at once, and the next run continues from there', async t => {
    const ended = new AbortController()
    const { standIn, options, folder } = await prepare(t, { signal: ended.signal })
    standIn.fault = () => {
      if (standIn.requests >= 4) ended.abort()
      return null
    }
    await assert.rejects(runSendStage(options), JobPaused)
    assert.ok(!readCheckpoint(folder)!.isSent)
    await runSendStage({ ...options, signal: new AbortController().signal })
    await assertWhole(standIn)
  })

  it('sending keeps the rate that the service allows', async t => {
    const { standIn, options, clock } = await prepare(t, { lanes: 1 })
    standIn.answer = () => ({ headers: { 'x-import-rate': '100' } })
    await runSendStage(options)
    const seconds = clock.waits.reduce((sum, ms) => sum + ms, 0) / 1_000
    const events = (await eventsOf(job)).length
    assert.ok(seconds > events / 100 - 10 && seconds < events / 100 + 10, `${events} events in ${seconds} s`)
  })

  it('a request to wait halves the rate, unless the service names the rate to use', async t => {
    const secondsWith = async (named: Record<string, string>): Promise<number> => {
      const { standIn, options, clock } = await prepare(t, { lanes: 1, rate: 200 })
      const headers = { 'retry-after': '6', ...named }
      let asked = 0
      standIn.fault = () => (asked++ < 5 ? { status: 429, headers } : null)
      standIn.answer = () => ({ headers: named })
      await runSendStage(options)
      return clock.waits.reduce((sum, ms) => sum + ms, 0) / 1_000 - 5 * 6
    }
    const [halved, kept] = [await secondsWith({}), await secondsWith({ 'x-import-rate': '200' })]
    assert.ok(halved > 1.5 * kept, `${halved} s, ${kept} s`)
  })

  const changes: [what: string, change: object, said: RegExp][] = [
    [
      'target',
      { target: 'http://127.0.0.1:1' },
      /Sending began with the target http:.* and now it is http:\/\/127\.0\.0\.1:1\./,
    ],
    ['mapping', { mappingSha256: 'other' }, /a mapping with the hash mapping, and now it is other/],
  ]
  for (const [what, change, said] of changes)
    it(`sending does not continue with another ${what}, and the message names the difference`, async t => {
      const { options } = await prepare(t)
      await sendBeginning(options)
      await assert.rejects(runSendStage({ ...options, identity: { ...options.identity, ...change } }), said)
    })

  it('sending does not continue if a part’s bytes have changed, and the message names the part', async t => {
    const { options } = await prepare(t)
    await sendBeginning(options)
    const other = { ...job, parts: job.parts.map(part => ({ ...part, sha256: 'other' })) }
    await assert.rejects(
      runSendStage({ ...options, job: other }),
      /part groups\/0 with the hash [0-9a-f]{64}, and now it is other/,
    )
  })
})

/** Sends until the first lines of records are committed. */
async function sendBeginning(options: SendOptions): Promise<void> {
  const onStep = () => {
    const parts = readCheckpoint(options.folder)?.parts ?? []
    if (parts.some(({ counts }) => counts.read > 0)) throw new Error('stopped here')
  }
  await assert.rejects(runSendStage({ ...options, onStep }), /stopped here/)
}
