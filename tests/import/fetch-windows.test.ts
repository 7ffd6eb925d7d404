// Fetching from the exports of Mixpanel and Amplitude, against stand-ins that behave as badly as the real ones. Source:
// docs/wire/import.md §1.1, §1.2, §2.5, §5 complaints 1, 6, 8, 11, §7 A3.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { Uint8ArrayReader, Uint8ArrayWriter, ZipReader } from '@zip.js/zip.js'
import type { FetchProgress } from '#importer/fetch/fetch-reporter.ts'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { divideIntoWindows } from '#importer/fetch/fetch-windows.ts'
import { describeWait, type FetchClock } from '#importer/fetch/waiting.ts'
import {
  type AskedWindow,
  type Fault,
  type StandIn,
  type StandInOptions,
  startAmplitude,
  startMixpanel,
} from '../support/export-stand-in.ts'
import { type Fetching, fetchInto, fetchNowMs, rawFiles, rawLines } from '../support/fetching.ts'
import { type QuickClock, quickClock } from '../support/fixed-clock.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Events as Mixpanel exports them, with an id that exceeds the precision of a double. */
function eventsOf(from: string, to: string, eventCount = 3): Map<string, string[]> {
  return new Map(
    divideIntoWindows({ from, to }, 1).map(({ from: day }) => [
      day,
      Array.from({ length: eventCount }, (_, index) => {
        const time = Date.parse(day) / 1_000 + index
        return `{"event":"Ordered","properties":{"time":${time},"distinct_id":"u-${index}","$insert_id":"${day}-${index}","n":9007199254740993}}`
      }),
    ]),
  )
}

async function linesOfZips(folder: string): Promise<string[]> {
  const lines: string[] = []
  for (const name of rawFiles(folder)) {
    const zip = new ZipReader(new Uint8ArrayReader(readFileSync(join(folder, 'raw', name))), { useWebWorkers: false })
    for (const entry of await zip.getEntries())
      if (!entry.directory && entry.filename.endsWith('.gz')) {
        const text = gunzipSync(await entry.getData(new Uint8ArrayWriter())).toString()
        lines.push(...text.split('\n').filter(Boolean))
      }
    await zip.close()
  }
  return lines
}

const mixpanel = {
  config: { source: 'mixpanel', from: '2024-05-01', to: '2024-05-07' },
  ...{ dayCount: 7, events: eventsOf('2024-05-01', '2024-05-07') },
  ...{ start: startMixpanel, readLines: async (folder: string) => rawLines(folder), user: 'mixpanel-secret-1:' },
}

const amplitude = {
  config: { source: 'amplitude', from: '2024-05-01', to: '2024-05-03' },
  dayCount: 3,
  /** The second day has data only in its last hour. */
  events: new Map(
    ['20240501T00', '20240501T13', '20240501T23', '20240502T23', '20240503T00', '20240503T22'].map(hour => [
      hour,
      [0, 1, 2].map(index => `{"event_type":"Ordered","amplitude_id":9007199254740993,"uuid":"${hour}-${index}"}`),
    ]),
  ),
  ...{ start: startAmplitude, readLines: linesOfZips, user: 'amplitude-key-1:amplitude-secret-1' },
}

async function aWorld(t: TestContext, api: typeof mixpanel | typeof amplitude, options: Partial<StandInOptions> = {}) {
  const { config: may, events: lines, start, readLines } = api
  const standIn = await start({ lines, ...options })
  t.after(() => standIn.stop())
  const folder = tempDir(t)
  const notices: string[] = []
  return {
    ...{ standIn, folder, notices },
    fetch: (config: Readonly<Record<string, string>> = {}, fetching: Fetching = {}) => {
      const onNotice = (line: string) => notices.push(line)
      return fetchInto(folder, { ...may, ...config, host: standIn.url }, { onNotice, ...fetching })
    },
    /** Whether the files have every line of the source once. */
    assertComplete: async (note = '') =>
      assert.deepEqual((await readLines(folder)).sort(), [...(options.lines ?? lines).values()].flat().sort(), note),
  }
}

/** Time passes only once all calls have arrived, because the stand-in counts a call when it arrives, by the same clock. */
function clockOfArrivals(clock: QuickClock, standIn: StandIn) {
  let calls = 0
  const arriving: FetchClock = {
    ...clock,
    sleep: async (ms, signal) => {
      while (standIn.asked.length < calls && !signal.aborted) await turn()
      await clock.sleep(ms, signal)
    },
  }
  return {
    clock: arriving,
    onProgress: (progress: FetchProgress) => {
      calls = progress.calls
    },
  }
}

function repeatFaults(faults: readonly Fault[]) {
  return ({ times }: AskedWindow) => faults[times - 1] ?? null
}

for (const api of [mixpanel, amplitude])
  describe(`fetching from ${api.config.source}`, () => {
    it('each day or hour is fetched once, whatever the window size, since both ends of a window are inclusive', async t => {
      for (const days of ['1', '2', '3', '7', '365']) {
        const { standIn, fetch, assertComplete } = await aWorld(t, api)
        const { partsDone } = await fetch({ window_days: days })
        await assertComplete(`windows of ${days} days`)
        assert.equal(partsDone, Math.ceil(api.dayCount / Number(days)))
        assert.equal(standIn.asked.length, partsDone)
        assert.equal(standIn.asked[0]!.authorization, `Basic ${Buffer.from(api.user).toString('base64')}`)
      }
    })

    it('a truncated, empty or damaged answer in any format is never accepted', async t => {
      for (const kind of ['cut_connection', 'cut_file', 'closed', 'terminated_early', 'damaged', 'empty_body'] as const)
        for (const isPacked of api === amplitude || kind === 'cut_file' || kind === 'damaged'
          ? [true]
          : [true, false]) {
          const { standIn, fetch, assertComplete } = await aWorld(t, api, {
            isPacked,
            faultOf: repeatFaults([{ kind }]),
          })
          await fetch()
          await assertComplete(kind)
          assert.equal(standIn.asked.length, 2 * api.dayCount, kind)
        }
    })

    it('the fetch continues after temporary refusals, with and without Retry-After', async t => {
      const faults = [408, 429, 500, 429, 502, 429, 503].map((status, index) => ({
        ...{ kind: 'status' as const, status },
        ...(status === 429 && { retryAfter: ['30', '0', 'soon'][index >> 1]! }),
      }))
      const { fetch, assertComplete } = await aWorld(t, api, { faultOf: repeatFaults(faults) })
      await fetch()
      await assertComplete()
    })

    it('the fetch stops if the smallest window is refused, with a message that names the alternatives', async t => {
      const { fetch } = await aWorld(t, api, { faultOf: () => ({ kind: 'status', status: 400, body: 'over 4GB' }) })
      await assert.rejects(fetch(), /400: over 4GB.*2024-?05-?0.*smallest window.*export to (a bucket|Amazon S3)/)
    })

    it('days to which the source may still add events are refused', async t => {
      const { fetch } = await aWorld(t, api)
      const complaint = /may still add to 2026-01-14\. Fetch up to 2026-01-13 now/
      await assert.rejects(fetch({ from: '2026-01-01', to: '2026-01-14' }), complaint)
    })
  })

describe('fetching from Amplitude only', () => {
  it('status 404 means no data, and no file is written', async t => {
    const lines = new Map([...amplitude.events].filter(([hour]) => !hour.startsWith('20240502')))
    const { folder, fetch } = await aWorld(t, amplitude, { lines })
    const { partsDone, partsEmpty } = await fetch()
    assert.deepEqual([partsDone, partsEmpty], [2, 1])
    assert.deepEqual(rawFiles(folder), [
      'amplitude-20240501T00-to-20240501T23.zip',
      'amplitude-20240503T00-to-20240503T23.zip',
    ])
  })

  it('a window over 4 GB or over the time limit is halved, down to single hours', async t => {
    const lines = new Map([...amplitude.events].filter(([hour]) => hour.startsWith('20240501')))
    for (const status of [400, 413, 504]) {
      const { standIn, folder, fetch, assertComplete } = await aWorld(t, amplitude, {
        lines,
        faultOf: ({ from, to }) => (from === to ? null : { kind: 'status', status, body: 'over 4GB' }),
      })
      await fetch({ to: '2024-05-01' })
      await assertComplete()
      assert.equal(standIn.asked.length, 23 + 24)
      const hours = readFetchedParts(folder)!.parts.map(({ object }) => object)
      assert.deepEqual(hours, [...hours].sort())
    }
  })

  it('the fetch warns repeatedly while no data arrives, and continues', async t => {
    const faults = Array.from({ length: 100 }, () => ({ kind: 'closed' as const }))
    const { notices, fetch, assertComplete } = await aWorld(t, amplitude, { faultOf: repeatFaults(faults) })
    await fetch()
    await assertComplete()
    assert.match(notices[0]!, /^Nothing has come for 1\d minutes: the source closed the connection\. Still trying/)
    assert.ok(notices.length > 1 && notices.length < 30, `${notices.length} notices`)
  })

  it('both keys are required, and the missing one is named; unknown regions are refused', async t => {
    const env = { AMPLITUDE_API_KEY: 'key' }
    await assert.rejects(fetchInto(tempDir(t), amplitude.config, { env }), /Set AMPLITUDE_SECRET_KEY/)
    const config = { ...amplitude.config, region: 'in' }
    await assert.rejects(fetchInto(tempDir(t), config), /amplitude has no region in/)
  })
})

describe('fetching from Mixpanel only', () => {
  it('no part starts while free space is below the reserve, which is reported once, and the fetch continues by itself', async t => {
    const { standIn, notices, fetch, assertComplete } = await aWorld(t, mixpanel)
    const clock = quickClock()
    const reasons = new Set<string>()
    const onProgress = ({ waiting }: FetchProgress) => waiting !== null && reasons.add(waiting.reason)
    // Space becomes free five minutes later.
    const findSpaceProblem = () => {
      if (clock.sleptMs() >= 300_000) return null
      assert.equal(standIn.asked.length, 0)
      return 'WARNING: no space'
    }
    await fetch({}, { clock, onProgress, findSpaceProblem })
    await assertComplete()
    assert.ok(clock.sleptMs() >= 300_000)
    assert.deepEqual(notices, ['WARNING: no space'])
    assert.ok(reasons.has('the disk is full'), [...reasons].join())
  })

  it('files keep the original bytes, are named after their days, and have their hashes recorded', async t => {
    const { folder, fetch } = await aWorld(t, mixpanel)
    await fetch({ window_days: '5' })
    assert.deepEqual(rawFiles(folder), [
      'mixpanel-2024-05-01-to-2024-05-05.jsonl.gz',
      'mixpanel-2024-05-06-to-2024-05-07.jsonl.gz',
    ])
    const { parts, isComplete } = readFetchedParts(folder)!
    assert.ok(isComplete)
    for (const { object, sha256 } of parts) {
      const hash = await crypto.subtle.digest('SHA-256', readFileSync(join(folder, object)))
      assert.equal(Buffer.from(hash).toString('hex'), sha256)
    }
  })

  it('times are requested in milliseconds, and a service account requires and sends a project id', async t => {
    const { standIn, fetch } = await aWorld(t, mixpanel)
    const env = { MIXPANEL_SERVICE_ACCOUNT: 'importer.1', MIXPANEL_SERVICE_SECRET: 'geheim' }
    await assert.rejects(fetch({}, { env }), /A service account of Mixpanel needs project_id/)
    await fetch({ project_id: '4711' }, { env })
    const { url, authorization } = standIn.asked[0]!
    assert.equal(url.search, '?from_date=2024-05-01&to_date=2024-05-01&time_in_ms=true&project_id=4711')
    assert.equal(authorization, `Basic ${Buffer.from('importer.1:geheim').toString('base64')}`)
  })

  it('at most 60 calls an hour are made, and the waiting time is reported', async t => {
    const events = eventsOf('2023-01-01', '2023-05-30', 1)
    const clock = quickClock()
    const limits = { callsPerHour: 60, nowMs: clock.nowMs }
    const { standIn, fetch, assertComplete } = await aWorld(t, mixpanel, { lines: events, ...limits })
    const waitTexts = new Set<string>()
    const arrivals = clockOfArrivals(clock, standIn)
    const onProgress = (progress: FetchProgress) => {
      arrivals.onProgress(progress)
      if (progress.waiting !== null) waitTexts.add(describeWait(progress.waiting, clock.nowMs()))
    }
    await fetch({ from: '2023-01-01', to: '2023-05-30' }, { clock: arrivals.clock, onProgress })
    assert.equal(standIn.overLimit(), 0)
    assert.equal(standIn.asked.length, 150)
    await assertComplete()
    assert.ok(clock.sleptMs() >= 2 * 3_600_000 && clock.sleptMs() < 2.1 * 3_600_000, `${clock.sleptMs()} ms`)
    assert.ok(waitTexts.has('source limit, 60 min'))
    for (const words of waitTexts) assert.match(words, /^source limit, (\d+ s|[1-5]?\d min|60 min)$/)
  })

  it('a restarted fetch remembers the calls of the last hour', async t => {
    const events = eventsOf('2023-01-01', '2023-03-31', 1)
    const clock = quickClock()
    const { standIn, fetch } = await aWorld(t, mixpanel, { lines: events, callsPerHour: 60, nowMs: clock.nowMs })
    const config = { from: '2023-01-01', to: '2023-03-31' }
    const stop = new AbortController()
    const onProgress = ({ partsDone }: FetchProgress) => partsDone >= 55 && stop.abort()
    await assert.rejects(fetch(config, { clock, signal: stop.signal, onProgress }), { name: 'AbortError' })
    await fetch(config, { clock })
    assert.equal(standIn.overLimit(), 0)
  })

  it('a refused call is repeated when the source allows it, but no sooner', async t => {
    const clock = quickClock()
    const untilMs = fetchNowMs + 840_000
    const { standIn, fetch, assertComplete } = await aWorld(t, mixpanel, {
      faultOf: () => {
        const retryAfter = String((untilMs - clock.nowMs()) / 1_000)
        return clock.nowMs() < untilMs ? { kind: 'status', status: 429, retryAfter } : null
      },
    })
    const waitTexts: string[] = []
    const onProgress = ({ waiting }: FetchProgress) =>
      waiting !== null && waitTexts.push(describeWait(waiting, clock.nowMs()))
    await fetch({}, { clock, onProgress })
    assert.ok(waitTexts.includes('source limit, 14 min'), waitTexts.join())
    await assertComplete()
    // One call for each day, plus those in progress when the first was refused.
    assert.ok(standIn.asked.length <= 7 + 4, `${standIn.asked.length} calls`)
  })

  it('a window that is too large, takes too long, or fails repeatedly midway is halved', async t => {
    for (const fault of [
      { kind: 'status', status: 400, body: 'too much data' },
      { kind: 'status', status: 504 },
      { kind: 'cut_file' },
    ] as const) {
      const { folder, notices, fetch, assertComplete } = await aWorld(t, mixpanel, {
        faultOf: ({ from, to }) => (Date.parse(to) - Date.parse(from) > 86_400_000 ? fault : null),
      })
      await fetch({ window_days: '7' })
      await assertComplete()
      assert.match(notices.join(), /mixpanel-2024-05-01-to-2024-05-07.* Asking for it in 2 parts/)
      assert.deepEqual(
        readFetchedParts(folder)!.parts.map(({ object }) => object.slice('raw/mixpanel-'.length, -'.jsonl.gz'.length)),
        ['2024-05-01-to-2024-05-02', '2024-05-03-to-2024-05-04', '2024-05-05-to-2024-05-06', '2024-05-07'],
      )
    }
  })

  it('an empty answer is accepted only when a second request confirms it', async t => {
    const events = new Map([...mixpanel.events, ['2024-05-04', []]])
    const { standIn, fetch, assertComplete } = await aWorld(t, mixpanel, { lines: events })
    const { partsDone, partsEmpty } = await fetch()
    assert.deepEqual([partsDone, partsEmpty], [6, 1])
    assert.equal(standIn.asked.filter(({ from }) => from === '2024-05-04').length, 2)
    await assertComplete()
  })

  it('a range without any data is reported, since a wrong region looks the same', async t => {
    const { fetch } = await aWorld(t, mixpanel, { lines: new Map() })
    assert.match((await fetch()).warnings[0]!.line, /no data in the whole range.*region/)
  })

  it('a refused key stops the fetch at once and is never printed', async t => {
    for (const status of [401, 403]) {
      const body = 'no access for mixpanel-secret-1'
      const { standIn, folder, fetch } = await aWorld(t, mixpanel, {
        faultOf: () => ({ kind: 'status', status, body }),
      })
      await assert.rejects(fetch(), (error: Error) => {
        assert.match(error.message, new RegExp(`Mixpanel answers ${status}: no access for ….*region`))
        return true
      })
      assert.ok(standIn.asked.length <= 4)
      for (const name of readdirSync(folder).filter(file => file.startsWith('fetch.')))
        assert.ok(!readFileSync(join(folder, name), 'latin1').includes('mixpanel-secret-1'), name)
    }
  })

  it('does not request again the files that it has, even if their data changed at Mixpanel', async t => {
    let isReversed = false
    const { standIn, folder, fetch } = await aWorld(t, mixpanel, {
      reorder: lines => (isReversed ? lines.toReversed() : lines),
    })
    await fetch()
    const before = rawLines(folder)
    isReversed = true
    await fetch()
    assert.equal(standIn.asked.length, 7)
    assert.deepEqual(rawLines(folder), before)
  })

  it('a fetched file that was changed on disk is refused', async t => {
    const { folder, fetch } = await aWorld(t, mixpanel)
    await fetch()
    writeFileSync(join(folder, 'raw', 'mixpanel-2024-05-02.jsonl.gz'), 'x')
    await assert.rejects(fetch(), /raw\/mixpanel-2024-05-02\.jsonl\.gz has 1 byte and/)
  })

  it('a clock that is set back does not prolong a wait', async t => {
    const { fetch, assertComplete } = await aWorld(t, mixpanel)
    const stop = new AbortController()
    const yearMs = 365 * 86_400_000
    const ahead = quickClock(fetchNowMs + yearMs)
    const onProgress = ({ partsDone }: FetchProgress) => partsDone === 4 && stop.abort(new Error('stopped'))
    await assert.rejects(fetch({}, { clock: ahead, signal: stop.signal, onProgress }), /stopped/)
    const clock = quickClock()
    await fetch({}, { clock })
    await assertComplete()
    assert.ok(clock.sleptMs() < 2 * 3_600_000, `${clock.sleptMs()}`)
  })
})
