// Fetching from Mixpanel's export, against a stand-in that behaves as badly as the real one. Source:
// docs/wire/import.md §1.2, §2.5, §5 complaints 1, 6, 8, 11, §7 A3.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { divideIntoWindows } from '#importer/fetch/fetch-windows.ts'
import { describeWait, type FetchClock } from '#importer/fetch/waiting.ts'
import { type StandIn, type StandInOptions, startMixpanel } from '../support/export-stand-in.ts'
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

const may = { source: 'mixpanel', from: '2024-05-01', to: '2024-05-07' }
const mayEvents = eventsOf(may.from, may.to)

interface World {
  readonly standIn: StandIn
  readonly folder: string
  readonly notices: string[]
  fetch(config?: Record<string, string>, fetching?: Fetching): ReturnType<typeof fetchInto>
}

async function aWorld(t: TestContext, options: Partial<StandInOptions> = {}): Promise<World> {
  const standIn = await startMixpanel({ lines: mayEvents, ...options })
  t.after(() => standIn.stop())
  const folder = tempDir(t)
  const notices: string[] = []
  return {
    ...{ standIn, folder, notices },
    fetch: (config = may, fetching = {}) =>
      fetchInto(folder, { ...config, host: standIn.url }, { onNotice: line => notices.push(line), ...fetching }),
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
    onProgress: (progress: { readonly calls: number }) => {
      calls = progress.calls
    },
  }
}

const truth = (events: Map<string, string[]> = mayEvents) => [...events.values()].flat().sort()

describe('fetching from Mixpanel', () => {
  it('no part starts while free space is below the reserve; this is reported once, and the fetch continues by itself', async t => {
    const { standIn, folder, notices, fetch } = await aWorld(t)
    const clock = quickClock()
    const reasons = new Set<string>()
    await fetch(may, {
      clock,
      onNotice: line => notices.push(line),
      onProgress: ({ waiting }) => {
        if (waiting !== null) reasons.add(waiting.reason)
      },
      // Space becomes free five minutes later.
      findSpaceProblem: () => {
        if (clock.sleptMs() >= 300_000) return null
        assert.equal(standIn.asked.length, 0)
        return 'WARNING: no space'
      },
    })
    assert.deepEqual(rawLines(folder).sort(), truth())
    assert.ok(clock.sleptMs() >= 300_000)
    assert.deepEqual(notices, ['WARNING: no space'])
    assert.ok(reasons.has('the disk is full'), [...reasons].join())
  })

  it('each day is fetched once, whatever the window size, since both ends of a window are inclusive', async t => {
    for (const days of ['1', '2', '3', '7', '30']) {
      const { standIn, folder, fetch } = await aWorld(t)
      const result = await fetch({ ...may, window_days: days })
      assert.deepEqual(rawLines(folder).sort(), truth(), `windows of ${days} days`)
      assert.equal(result.partsDone, Math.ceil(7 / Number(days)))
      assert.equal(standIn.asked.length, result.partsDone)
    }
  })

  it('files keep the original bytes, are named by their days, and have their hashes recorded', async t => {
    const { folder, fetch } = await aWorld(t)
    await fetch({ ...may, window_days: '5' })
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

  it('milliseconds are requested, and a service account names its project', async t => {
    const { standIn, fetch } = await aWorld(t)
    const env = { MIXPANEL_SERVICE_ACCOUNT: 'importer.1', MIXPANEL_SERVICE_SECRET: 'geheim' }
    await assert.rejects(fetch(may, { env }), /A service account of Mixpanel needs project_id/)
    await fetch({ ...may, project_id: '4711' }, { env })
    const { url, authorization } = standIn.asked[0]!
    assert.equal(url.search, '?from_date=2024-05-01&to_date=2024-05-01&time_in_ms=true&project_id=4711')
    assert.equal(authorization, `Basic ${Buffer.from('importer.1:geheim').toString('base64')}`)
  })

  it('at most 60 calls an hour are made, and the waiting time is reported', async t => {
    const events = eventsOf('2023-01-01', '2023-05-30', 1)
    const clock = quickClock()
    const limits = { callsPerHour: 60, nowMs: clock.nowMs }
    const { standIn, folder, fetch } = await aWorld(t, { lines: events, ...limits })
    const waitTexts = new Set<string>()
    const arrivals = clockOfArrivals(clock, standIn)
    await fetch(
      { source: 'mixpanel', from: '2023-01-01', to: '2023-05-30' },
      {
        clock: arrivals.clock,
        onProgress: progress => {
          const { waiting } = progress
          arrivals.onProgress(progress)
          if (waiting !== null) waitTexts.add(describeWait(waiting, clock.nowMs()))
        },
      },
    )
    assert.equal(standIn.overLimit(), 0)
    assert.equal(standIn.asked.length, 150)
    assert.deepEqual(rawLines(folder).sort(), truth(events))
    assert.ok(clock.sleptMs() >= 2 * 3_600_000 && clock.sleptMs() < 2.1 * 3_600_000, `${clock.sleptMs()} ms`)
    assert.ok(waitTexts.has('source limit, 60 min'))
    for (const words of waitTexts) assert.match(words, /^source limit, (\d+ s|[1-5]?\d min|60 min)$/)
  })

  it('a restarted fetch remembers the calls of the last hour', async t => {
    const events = eventsOf('2023-01-01', '2023-03-31', 1)
    const clock = quickClock()
    const { standIn, fetch } = await aWorld(t, { lines: events, callsPerHour: 60, nowMs: clock.nowMs })
    const config = { source: 'mixpanel', from: '2023-01-01', to: '2023-03-31' }
    const stop = new AbortController()
    const onProgress = ({ partsDone }: { partsDone: number }) => {
      if (partsDone >= 55) stop.abort()
    }
    await assert.rejects(fetch(config, { clock, signal: stop.signal, onProgress }), { name: 'AbortError' })
    await fetch(config, { clock })
    assert.equal(standIn.overLimit(), 0)
  })

  it('a refused call is repeated when the source allows it, and no sooner', async t => {
    const clock = quickClock()
    const untilMs = fetchNowMs + 840_000
    const { standIn, folder, fetch } = await aWorld(t, {
      faultOf: () => {
        const retryAfter = String((untilMs - clock.nowMs()) / 1_000)
        return clock.nowMs() < untilMs ? { kind: 'status', status: 429, retryAfter } : null
      },
    })
    const waitTexts: string[] = []
    await fetch(may, {
      clock,
      onProgress: ({ waiting }) => {
        if (waiting !== null) waitTexts.push(describeWait(waiting, clock.nowMs()))
      },
    })
    assert.ok(waitTexts.includes('source limit, 14 min'), waitTexts.join())
    assert.deepEqual(rawLines(folder).sort(), truth())
    // One call for each day, plus those in progress when the first was refused.
    assert.ok(standIn.asked.length <= 7 + 4, `${standIn.asked.length} calls`)
  })

  it('a truncated, empty or damaged answer of any form is never accepted', async t => {
    for (const kind of ['cut_connection', 'cut_file', 'closed', 'terminated_early', 'damaged', 'empty_body'] as const)
      for (const isPacked of kind === 'cut_file' || kind === 'damaged' ? [true] : [true, false]) {
        const { folder, standIn, fetch } = await aWorld(t, {
          isPacked,
          faultOf: ({ times }) => (times === 1 ? { kind } : null),
        })
        await fetch()
        assert.deepEqual(rawLines(folder).sort(), truth(), kind)
        assert.equal(standIn.asked.length, 14, kind)
      }
  })

  it('the fetch continues after 408, 500, 502 and 503', async t => {
    const statuses = [408, 500, 502, 503]
    const { folder, fetch } = await aWorld(t, {
      faultOf: ({ times }) => (times > statuses.length ? null : { kind: 'status', status: statuses[times - 1]! }),
    })
    await fetch()
    assert.deepEqual(rawLines(folder).sort(), truth())
  })

  it('a window that is too large, takes too long, or breaks off repeatedly is halved', async t => {
    for (const fault of [
      { kind: 'status', status: 400, body: 'too much data' },
      { kind: 'status', status: 504 },
      { kind: 'cut_file' },
    ] as const) {
      const { folder, notices, fetch } = await aWorld(t, {
        faultOf: ({ from, to }) => (Date.parse(to) - Date.parse(from) > 86_400_000 ? fault : null),
      })
      await fetch({ ...may, window_days: '7' })
      assert.deepEqual(rawLines(folder).sort(), truth())
      assert.match(notices.join(), /mixpanel-2024-05-01-to-2024-05-07.* Asking for it in 2 parts/)
      assert.deepEqual(
        readFetchedParts(folder)!.parts.map(({ object }) => object.slice('raw/mixpanel-'.length, -'.jsonl.gz'.length)),
        ['2024-05-01-to-2024-05-02', '2024-05-03-to-2024-05-04', '2024-05-05-to-2024-05-06', '2024-05-07'],
      )
    }
  })

  it('a single day that is refused stops the fetch, with a message that names the alternatives', async t => {
    const { fetch } = await aWorld(t, {
      faultOf: ({ from }) => (from === '2024-05-03' ? { kind: 'status', status: 400, body: 'too much data' } : null),
    })
    await assert.rejects(fetch(), /400: too much data.*2024-05-03.*smallest window.*export to a bucket/)
  })

  it('an empty answer is believed only when it is repeated', async t => {
    const events = new Map([...mayEvents, ['2024-05-04', []]])
    const { folder, standIn, fetch } = await aWorld(t, { lines: events })
    const { partsDone, partsEmpty } = await fetch()
    assert.deepEqual([partsDone, partsEmpty], [6, 1])
    assert.equal(standIn.asked.filter(({ from }) => from === '2024-05-04').length, 2)
    assert.deepEqual(rawLines(folder).sort(), truth(events))
  })

  it('a range without any data is reported, since a wrong region looks the same', async t => {
    const { fetch } = await aWorld(t, { lines: new Map() })
    assert.match((await fetch()).warnings[0]!.line, /no data in the whole range.*region/)
  })

  it('a refused key stops the fetch at once and is never printed', async t => {
    for (const status of [401, 403]) {
      const body = 'no access for mixpanel-secret-1'
      const { standIn, folder, fetch } = await aWorld(t, { faultOf: () => ({ kind: 'status', status, body }) })
      await assert.rejects(fetch(), (error: Error) => {
        assert.match(error.message, new RegExp(`Mixpanel answers ${status}: no access for ….*region`))
        return true
      })
      assert.ok(standIn.asked.length <= 4)
      assert.equal(standIn.asked[0]!.authorization, `Basic ${Buffer.from('mixpanel-secret-1:').toString('base64')}`)
      for (const name of ['fetch.db', 'fetch.db-wal'])
        assert.ok(!readOr(join(folder, name)).includes('mixpanel-secret-1'), name)
    }
  })

  it('kept files are not requested again, even when the source has changed', async t => {
    let isReversed = false
    const { standIn, folder, fetch } = await aWorld(t, {
      reorder: lines => (isReversed ? lines.toReversed() : lines),
    })
    await fetch()
    const before = rawLines(folder)
    isReversed = true
    await fetch()
    assert.equal(standIn.asked.length, 7)
    assert.deepEqual(rawLines(folder), before)
  })

  it('another range in the same folder is refused, and so is a changed file', async t => {
    const { folder, fetch } = await aWorld(t)
    await fetch()
    await assert.rejects(
      fetch({ ...may, to: '2024-05-08' }),
      /--to 2024-05-08 instead of --to 2024-05-07\. Take another folder/,
    )
    writeFileSync(join(folder, 'raw', 'mixpanel-2024-05-02.jsonl.gz'), 'x')
    await assert.rejects(fetch(), /raw\/mixpanel-2024-05-02\.jsonl\.gz has 1 byte and/)
  })

  it('a clock that is set back does not prolong the waiting', async t => {
    const { folder, fetch } = await aWorld(t)
    const stop = new AbortController()
    const yearMs = 365 * 86_400_000
    const ahead = quickClock(fetchNowMs + yearMs)
    const onProgress = ({ partsDone }: { partsDone: number }) => partsDone === 4 && stop.abort(new Error('stopped'))
    await assert.rejects(fetch(may, { clock: ahead, signal: stop.signal, onProgress }), /stopped/)
    const clock = quickClock()
    await fetch(may, { clock })
    assert.deepEqual(rawLines(folder).sort(), truth())
    assert.ok(clock.sleptMs() < 2 * 3_600_000, `${clock.sleptMs()}`)
  })

  it('two fetches into one folder at once are refused', async t => {
    const { fetch } = await aWorld(t)
    const first = fetch()
    await assert.rejects(fetch(), /Another process fetches/)
    await first
  })

  it('days to which the source may still add events are refused', async t => {
    const { fetch } = await aWorld(t)
    const recent = { source: 'mixpanel', from: '2026-01-01', to: '2026-01-14' }
    await assert.rejects(fetch(recent), /may still add to 2026-01-14\. Fetch up to 2026-01-13 now/)
  })
})

function readOr(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
