// Random histories of live events, import jobs, and imports without a job. Undoing any of them leaves everything as if it
// had never been sent.

import { it } from 'node:test'
import fc from 'fast-check'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { dayMs } from '#core/time.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { assertAsIfNeverSent, type Step } from './never-sent.ts'
import { type Act, imported, inWorlds, live, mixedActs, mixedLiveActs } from './random-acts.ts'

const jobName = fc.constantFrom('first', 'second', 'third')
const options = fc.record({ overwritesPersons: fc.boolean(), backdatesFirstTouch: fc.boolean() })
const part = fc.oneof(
  { weight: 3, arbitrary: fc.record({ live: mixedLiveActs, isSentTwice: fc.boolean() }) },
  {
    weight: 3,
    // Another job's events are sent again with the job's own.
    arbitrary: fc.record({ send: jobName, acts: mixedActs, options, again: fc.option(jobName) }),
  },
  { weight: 2, arbitrary: fc.record({ publish: jobName }) },
  { weight: 1, arbitrary: fc.record({ day: fc.constantFrom(0, 1), acts: mixedActs }) },
)
type Part = typeof part extends fc.Arbitrary<infer One> ? One : never

export function randomHistoriesContract(engine: string, open: OpenSqlState, numRuns: number): void {
  it(`undoing import jobs on ${engine} leaves everything as if their events had never been sent`, async () => {
    const undone = fc.shuffledSubarray(['first', 'second', 'third', 'day 0', 'day 1'], { minLength: 1 })
    const run = inWorlds(open, async (newWorld, parts: readonly Part[], order: readonly string[]) => {
      const { history, sent } = historyOf(parts)
      await assertAsIfNeverSent(newWorld, history, [order.filter(name => sent.has(name))])
    })
    await fc.assert(fc.asyncProperty(fc.array(part, { minLength: 2, maxLength: 8 }), undone, run), { numRuns })
  })

  it(`undoing an import job on ${engine} after another job and later events leaves everything as without both jobs`, async () => {
    const run = inWorlds(
      open,
      async (newWorld, parts: readonly Part[], name: string, after: readonly Act[], acts: readonly Act[]) => {
        const { history, sent } = historyOf(parts)
        if (!sent.has(name)) return
        const later: readonly Step[] = [
          { undo: name },
          { live: after.map((act, index) => live(act, 10_000 + index)) },
          { send: 'later', events: acts.map(imported(1)) },
          { publish: 'later' },
        ]
        await assertAsIfNeverSent(newWorld, [...history, ...later], [['later']])
      },
    )
    const parts = fc.array(part, { minLength: 2, maxLength: 6 })
    await fc.assert(fc.asyncProperty(parts, jobName, mixedLiveActs, mixedActs, run), { numRuns })
  })
}

function historyOf(parts: readonly Part[]) {
  const history: Step[] = []
  const sent = new Map<string, CapturedEvent[]>()
  const published = new Set<string>()
  for (const [place, each] of parts.entries())
    if ('live' in each) {
      const events = each.live.map((act, index) => live(act, 1_000 * place + index))
      history.push({ live: each.isSentTwice ? [...events, ...events] : events })
    } else if ('day' in each) {
      if (each.acts.length === 0) continue
      const capturedAtMs = 1_790_000_000_000 + each.day * dayMs
      const events = each.acts.map(imported(1)).map(event => ({ ...event, capturedAtMs }))
      history.push({ day: `day ${each.day}`, events })
      sent.set(`day ${each.day}`, events)
    } else if ('send' in each) {
      if (published.has(each.send)) continue
      const events = [...each.acts.map(imported(1)), ...(sent.get(each.again ?? '') ?? [])]
      history.push({ send: each.send, events, options: each.options })
      sent.set(each.send, [...(sent.get(each.send) ?? []), ...events])
    } else if (sent.has(each.publish) && !published.has(each.publish)) {
      history.push(each)
      published.add(each.publish)
    }
  return { history, sent }
}
