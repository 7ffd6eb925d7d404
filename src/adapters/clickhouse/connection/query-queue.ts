// Limits how many queries of one project run at the event store.

import { ProjectQueue, type ProjectQueueLimits } from '#core/project-queue.ts'
import { PortError } from '#ports/port-error.ts'
import type { ClickHouseClient } from './clickhouse-clients.ts'

/** Runs a query as soon as its project may run another query; the query limit or the caller's signal ends it. */
export type RunProjectQuery = <T>(
  projectId: number,
  signal: AbortSignal | undefined,
  query: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>,
) => Promise<T>

/** A queue that refuses further queries with a PortError `full`. */
export function createQueryQueue(limits: ProjectQueueLimits): ProjectQueue {
  return new ProjectQueue(limits, () => {
    return new PortError('event-store', 'full', new Error('too many queries of this project are queued'))
  })
}
