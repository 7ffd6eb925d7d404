import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noEventUsage } from '#core/usage.ts'
import type { UsageDay } from '#ports/events/event-store-upkeep.ts'
import type { Deferral } from '#ports/state/worker-state.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import type { LostSpan } from './restore-event-store.ts'
import { createUsageSchedule } from './usage-schedule.ts'

function aSchedule(counted: UsageDay[], lost: LostSpan[] = []) {
  const clock = fixedClock('2026-11-10T12:00:00Z')
  const saved: {
    projectId: number
    days: readonly UsageDay[]
    frozenBeforeDay: string
    lostDays: readonly string[] | undefined
  }[] = []
  const asked: string[] = []
  const recordCounts = new Map<number, number>()
  let fails = false
  const failing = new Set<number>()
  let waitingSinceMs: number | null = null
  const setFailing = (value: boolean): void => {
    fails = value
  }
  const setWaiting = (day: string | null): void => {
    waitingSinceMs = day === null ? null : Date.parse(`${day}T12:00:00Z`)
  }
  let deferral: Deferral | null = null
  const setDeferral = (value: Deferral | null): void => {
    deferral = value
  }
  const schedule = createUsageSchedule({
    clock,
    positions: {
      findLogPosition: async () => ({ offset: 7, committedAtMs: null }),
      findDeferral: async () => deferral,
    },
    log: {
      listStreams: async () => [
        { stream: 'main', traffic: 'live' },
        { stream: 'historical', traffic: 'import' },
      ],
      readStreamStatus: async (stream, offset) => {
        assert.deepEqual([stream, offset], ['main', deferral?.offset ?? 7])
        return { endOffset: 9, appendedAtMs: waitingSinceMs }
      },
    },
    findLostSpans: async () => lost,
    events: {
      countUsage: async (projectId, fromDay, toDay) => {
        if (fails) throw new Error('down')
        if (failing.has(projectId)) throw new Error('too slow')
        asked.push(`${projectId} ${fromDay} ${toDay}`)
        return counted.filter(({ day }) => day >= fromDay && day <= toDay)
      },
    },
    usage: {
      listProjectIds: async () => [1, 2],
      sumChargedRecords: async () =>
        Array.from(recordCounts, ([projectId, recordCount]) => ({ projectId, recordCount })),
      saveEventCounts: async (projectId, days, frozenBeforeDay, lostDays) => {
        saved.push({ projectId, days, frozenBeforeDay, lostDays })
      },
    },
  })
  const process = (projectId: number) => void recordCounts.set(projectId, (recordCounts.get(projectId) ?? 0) + 1)
  return { schedule, saved, asked, clock, process, failing, setFailing, setWaiting, setDeferral }
}

describe('usage', () => {
  it('is computed for every project after a start, including days that a stopped worker missed', async () => {
    const late = { ...noEventUsage, day: '2026-10-20', eventsCharged: 5, eventsImported: 1 }
    const { schedule, saved, asked } = aSchedule([late])
    await schedule.round()
    assert.deepEqual(asked, ['1 2026-10-06 2026-11-10', '2 2026-10-06 2026-11-10'])
    assert.equal(saved[0]?.frozenBeforeDay, '2026-11-08')
    assert.deepEqual(saved[0]?.days.map(({ day }) => day).sort(), [
      '2026-10-20',
      '2026-11-08',
      '2026-11-09',
      '2026-11-10',
    ])
  })

  it('is not lowered for days of which the event store has lost events', async () => {
    const late = { ...noEventUsage, day: '2026-10-20', eventsCharged: 5 }
    const lost: LostSpan[] = []
    const { schedule, process, saved } = aSchedule([late], lost)
    const lostDays = async () => {
      process(1)
      await schedule.round()
      return saved.at(-1)!.lostDays!.toSorted()
    }
    await schedule.round()
    assert.deepEqual(await lostDays(), [])
    const span = (from: string | null, to: string | null) => ({
      oldestMs: from === null ? null : Date.parse(from),
      newestMs: to === null ? null : Date.parse(to),
    })
    lost.push(span('2026-11-07T10:00:00Z', '2026-11-08T00:00:00Z'), span('2026-11-10T11:00:00Z', null))
    assert.deepEqual(await lostDays(), ['2026-11-08', '2026-11-10'])
    lost.splice(0, 2, span(null, '2026-11-09T23:59:59Z'))
    assert.deepEqual(await lostDays(), ['2026-11-08', '2026-11-09'])
  })

  it('is computed between full runs only for open days of projects with new events', async () => {
    const today = { ...noEventUsage, day: '2026-11-10', eventsCharged: 2, llmEvents: 1 }
    const { schedule, process, asked, saved, clock } = aSchedule([today])
    await schedule.round()
    await schedule.round()
    assert.equal(asked.length, 2)
    process(2)
    await schedule.round()
    assert.deepEqual(asked.slice(2), ['2 2026-11-08 2026-11-10'])
    assert.deepEqual(
      saved.at(-1)?.days.find(({ day }) => day === '2026-11-10'),
      today,
    )
    clock.set(Date.parse('2026-11-11T00:00:01Z'))
    await schedule.round()
    assert.equal(asked.length, 5, 'everything once a day')
  })

  it('remains due while the event store is down', async () => {
    const { schedule, process, asked, setFailing } = aSchedule([])
    setFailing(true)
    await assert.rejects(schedule.round())
    setFailing(false)
    await schedule.round()
    assert.equal(asked.length, 2)
    process(1)
    setFailing(true)
    await assert.rejects(schedule.round())
    setFailing(false)
    await schedule.round()
    assert.equal(asked.length, 3)
  })

  it('is computed for other projects if one takes too long, and later for that one from its first missed day', async () => {
    const { schedule, process, failing, asked, clock } = aSchedule([])
    failing.add(1)
    await assert.rejects(schedule.round(), /too slow/)
    await assert.rejects(schedule.round(), /too slow/)
    assert.deepEqual(asked.splice(0), ['2 2026-10-06 2026-11-10'])
    clock.advance(86_400_000)
    process(2)
    await assert.rejects(schedule.round(), /too slow/)
    await assert.rejects(schedule.round(), /too slow/)
    assert.deepEqual(asked.splice(0), ['2 2026-10-07 2026-11-11'], 'once')
    failing.clear()
    await schedule.round()
    await schedule.round()
    assert.deepEqual(asked, ['1 2026-10-06 2026-11-11'])
  })

  it('is not final for days whose live events wait in the log, and is computed once these are processed', async () => {
    const { schedule, process, asked, saved, clock, setWaiting } = aSchedule([])
    setWaiting('2026-11-04')
    await schedule.round()
    assert.equal(saved.at(-1)?.frozenBeforeDay, '2026-11-02')
    process(2)
    setWaiting('2026-11-07')
    await schedule.round()
    assert.deepEqual([asked.at(-1), saved.at(-1)?.frozenBeforeDay], ['2 2026-11-02 2026-11-10', '2026-11-05'])
    process(2)
    setWaiting(null)
    await schedule.round()
    assert.deepEqual([asked.at(-1), saved.at(-1)?.frozenBeforeDay], ['2 2026-11-05 2026-11-10', '2026-11-08'])
    process(2)
    await schedule.round()
    assert.equal(asked.at(-1), '2 2026-11-08 2026-11-10')
    setWaiting('1970-01-01')
    clock.set(Date.parse('2026-11-11T00:00:01Z'))
    await schedule.round()
    assert.equal(
      saved.at(-1)?.frozenBeforeDay,
      '2025-10-05',
      'the number of open days is limited even for an impossible time',
    )
  })

  it('is not final for days with waiting events of a deferred project, however far other projects are processed', async () => {
    const { schedule, process, saved, setDeferral, setWaiting } = aSchedule([])
    setDeferral({ offset: 3, projects: [{ projectId: 1, fromOffset: 3 }] })
    setWaiting('2026-11-04')
    await schedule.round()
    assert.equal(saved.at(-1)?.frozenBeforeDay, '2026-11-02')
    setDeferral(null)
    setWaiting(null)
    process(1)
    await schedule.round()
    assert.equal(saved.at(-1)?.frozenBeforeDay, '2026-11-08')
  })
})
