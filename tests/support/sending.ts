// Shared by the tests of sending: options for the stage, and the contents that a service must have afterwards.

import { JobFolder } from '#importer/job/job-folder.ts'
import type { StagedJob } from '#importer/job/staged-part.ts'
import { formatTime } from '#importer/records/source-time.ts'
import type { SendOptions } from '#importer/send/send-stage.ts'
import type { ReceivedBatch, ReceivedEvent } from './batch-stand-in.ts'
import { quickClock } from './fixed-clock.ts'
import { eventsOf } from './memory-staged-job.ts'
import { silentProgress } from './silent-progress.ts'

export function sendOptions(
  folder: string,
  job: StagedJob,
  target: string,
  over: Partial<SendOptions> = {},
): SendOptions {
  return {
    folder: new JobFolder(folder),
    job,
    source: 'memory',
    identity: {
      jobId: 'job-1',
      serviceJobId: '7',
      target,
      project: '1',
      mappingSha256: 'mapping',
    },
    secretJobId: '7-secret',
    projectKey: 'phc_x',
    clock: quickClock(),
    progress: silentProgress,
    signal: new AbortController().signal,
    maxRejectShare: 0.01,
    rate: 1_000_000,
    ...over,
  }
}

/** The keys of which the store keeps one row each: (uuid, event, id, time), as text, sorted. */
export async function expectedKeys(job: StagedJob): Promise<string[]> {
  const keys = (await eventsOf(job)).map(each =>
    [each.uuid, each.event, each.distinctId, formatTime(each.timeUs)].join(' '),
  )
  return keys.toSorted()
}

/** After the store's deduplication. */
export function storedKeys(batches: readonly ReceivedBatch[]): string[] {
  return [...new Set(batches.flatMap(({ events }) => events).map(keyOf))].toSorted()
}

function keyOf({ uuid, event, timestamp, properties }: ReceivedEvent): string {
  return [uuid, event, properties.distinct_id, timestamp].join(' ')
}
