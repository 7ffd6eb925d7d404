// A completely sent job of one part, each line of which became one event.

import { JobFolder } from '#importer/job/job-folder.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { createCheckpoint, createPartProgress } from '#importer/send/checkpoint.ts'
import type { SentJob } from '#importer/send/sent-events.ts'

const dayPart = '2024-05-01/0'

/** @param folder for its reject files, of which there are none by default. */
export function sentJob(folder: string, events: readonly ImportedEvent[]): SentJob {
  const checkpoint = createCheckpoint(
    { jobId: 'j', serviceJobId: '1', target: 't', project: '1', mappingSha256: '' },
    '2026-01-01T00:00:00.000Z',
  )
  const progress = createPartProgress(dayPart, '')
  progress.counts.read = events.length
  checkpoint.parts.push(progress)
  const part = { id: dayPart, sha256: '', bytes: 0, records: events.length, firstUs: null, lastUs: null }
  return {
    folder: new JobFolder(folder),
    checkpoint,
    job: {
      parts: [part],
      async *readPart() {
        for (const [index, event] of events.entries())
          yield {
            ...{ line: index + 1, raw: { object: '', line: index + 1, byte: index }, textBytes: 0 },
            source: () => ({ text: '', sha256: '', unreadableBytes: null }),
            result: { kind: 'events' as const, events: [event], notes: [], dropped: [] },
          }
      },
    },
  }
}
