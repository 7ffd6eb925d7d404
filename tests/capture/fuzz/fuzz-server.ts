// One real server with everything that decodes public input: v0, v1, recordings and flags, over a log that returns what
// each request added.

import { composeCapture } from '#compose/front/capture.ts'
import { composeFlags } from '#compose/front/flags.ts'
import type { DecodedRecord } from '#core/events/captured-event.ts'
import { addRecordChecksums } from '#core/log/record-codec.ts'
import { type IngestionSettings, noIngestionSettings } from '#core/project.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import { compileTestProject, emptyHashKeys, emptySubjects, noVisitors } from '../../support/decide-server.ts'
import { decodeRecords } from '../../support/decode-records.ts'
import { fixedClock } from '../../support/fixed-clock.ts'
import { serveParts, testContext, testParts } from '../../support/front-parts.ts'

export interface FuzzServer {
  readonly url: string
  /** Records appended since the last call. */
  takeRecords(): DecodedRecord[]
  /** Events and recordings acknowledged so far. */
  acceptedCount(): Promise<number>
  close(): Promise<void>
}

/** @param projectKeys keys of one and the same project. */
export async function startFuzzServer(projectKeys: ReadonlySet<string>): Promise<FuzzServer> {
  const clock = fixedClock('2025-07-01T11:00:00Z')
  const context = testContext({ clock, monotonicNowMs: clock.nowMs })
  const { metrics } = context
  let appended: DecodedRecord[] = []
  const eventLog: EventLogAppender = {
    append: async (_lane, { bytes, recordCount }) => {
      addRecordChecksums(bytes)
      appended.push(...decodeRecords(bytes, recordCount))
    },
  }
  const ingestion: IngestionSettings = { ...noIngestionSettings, cookielessMode: 1 }
  const compiled = compileTestProject({
    project: { ingestion },
    flags: [{ key: 'on', filters: { groups: [{ rollout_percentage: 100 }] } }],
  })
  const opened = new AsyncDisposableStack()
  const parts = testParts(context, opened, {
    eventLog,
    definitions: { findProject: token => (projectKeys.has(token) ? compiled : null) },
    counters: { eventQuotas: { isOverQuota: () => false } },
    stores: {
      state: { subjects: { ...emptySubjects, ...emptyHashKeys, ...noVisitors }, loginWritesAtOnceMax: 64 },
      management: emptyHashKeys,
    },
  })
  const routes = [...composeCapture(parts).routes, ...composeFlags(parts).routes]
  const closing: (() => unknown)[] = []
  const { url } = await serveParts({ after: close => void closing.push(close as () => unknown) }, parts, routes, opened)
  return {
    url,
    takeRecords: () => {
      const taken = appended
      appended = []
      // Rejects are limited per second.
      clock.advance(10)
      return taken
    },
    acceptedCount: async () => (await metrics.eventsAccepted.get()).values.reduce((sum, { value }) => sum + value, 0),
    close: async () => {
      for (const close of closing) await close()
    },
  }
}
