// The event store on ClickHouse, embedded or a server: connects the queries and inserts of this folder to the port, and
// bounds how many queries a project may have.

import type { Clock } from '#ports/clock.ts'
import type { EventStore } from '#ports/event-store.ts'
import { findChargedTimes } from './charged-times.ts'
import { type ClickHouseEndpoint, createClickHouseClients } from './clickhouse-clients.ts'
import { listEventNames, listPropertyNames } from './definition-queries.ts'
import { findEvent, listEvents } from './event-queries.ts'
import {
  eventColumns,
  overrideColumns,
  rejectedColumns,
  replayedColumns,
  writeEventRow,
  writeOverrideRow,
  writeRejectedRow,
  writeReplayedRow,
} from './event-rows.ts'
import { findFlagCalls, thinnedColumns, writeThinnedRow } from './flag-calls.ts'
import { findHeldRows, writeMark } from './held-rows.ts'
import { discardJob, publishJob } from './import-partitions.ts'
import { createRowInserter } from './insert-rows.ts'
import { migrate } from './migrate.ts'
import { findOverrides } from './override-queries.ts'
import { ProjectQueue } from './project-queue.ts'
import { countRejected, listRejected } from './rejected-queries.ts'
import { findReplay, listReplays } from './replay-queries.ts'
import { replayColumns, writeReplayRow } from './replay-rows.ts'
import { countSurveyEvents } from './survey-queries.ts'
import { countUsage } from './usage-queries.ts'

export interface ClickHouseEventStoreOptions {
  /** Asked at first use and after each failure to connect: the embedded engine's port changes when it restarts. */
  readonly endpoint: () => ClickHouseEndpoint | null
  /** Gives `created_at` and, with it, which copy of an event is the later one. */
  readonly clock: Clock
  /** `PENNON_QUERY_TIMEOUT_SECONDS`; the embedded engine has to be prepared with the same. Default 8. */
  readonly queryTimeoutSeconds?: number
  /** `PENNON_REJECT_RETENTION_DAYS`. Default 30. */
  readonly rejectRetentionDays?: number
}

/** Queries of one project: so many run, so many wait, more are refused. */
const queueLimits = { runningMax: 4, waitingMax: 2 }

/** Opens no connection before the first call; every promise of `EventStore` holds. */
export function createClickHouseEventStore(options: ClickHouseEventStoreOptions): EventStore {
  const { clock, queryTimeoutSeconds = 8, rejectRetentionDays = 30 } = options
  const clients = createClickHouseClients({ endpoint: options.endpoint, queryTimeoutSeconds })
  const inserter = createRowInserter(clients)
  const queue = new ProjectQueue(queueLimits)
  let lastInsertedAtMs = 0

  return {
    migrate: () => migrate(clients, { rejectRetentionDays }),
    insert: async ({ events, pendingEvents, overrides, replays, rejected, thinned = [], areRestored = false }) => {
      // Never backwards, or a repeat after a correction of the clock would lose against the row it repeats.
      const insertedAtMs = Math.max(clock.nowMs(), lastInsertedAtMs)
      lastInsertedAtMs = insertedAtMs
      const eventRows = (table: string, rows: typeof events) =>
        inserter.insert({
          table,
          columns: eventColumns,
          rows,
          write: (to, row) => writeEventRow(to, row, insertedAtMs, areRestored),
        })
      const refusedEvents = await eventRows('events', events)
      const refusedPending = await eventRows('events_pending', pendingEvents)
      await inserter.insert({
        table: 'person_distinct_id_overrides',
        columns: overrideColumns,
        rows: overrides,
        write: writeOverrideRow,
      })
      await inserter.insert({
        table: 'thinned_flag_calls',
        columns: thinnedColumns,
        rows: thinned,
        write: writeThinnedRow,
      })
      const refusedReplays = await inserter.insert({
        table: 'replay_messages',
        columns: replayColumns,
        rows: replays,
        write: (to, replay) => writeReplayRow(to, replay, insertedAtMs),
      })
      await inserter.insert({
        table: 'rejected_events',
        columns: rejectedColumns,
        rows: rejected,
        write: writeRejectedRow,
      })
      return {
        refused: [
          ...refusedEvents.map(row => ({ list: 'events' as const, ...row })),
          ...refusedPending.map(row => ({ list: 'pendingEvents' as const, ...row })),
          ...refusedReplays.map(row => ({ list: 'replays' as const, ...row })),
        ],
      }
    },
    listEvents: (query, signal) =>
      queue.run(query.projectId, signal, () =>
        clients.read((client, either) => listEvents(client, query, either), signal),
      ),
    findEvent: (projectId, uuid, signal) =>
      queue.run(projectId, signal, () =>
        clients.read((client, either) => findEvent(client, projectId, uuid, either), signal),
      ),
    findChargedTimes: identities => findChargedTimes(clients, identities),
    findOverrides: ids => findOverrides(clients, ids),
    findFlagCalls: calls => findFlagCalls(clients, calls),
    countUsage: (projectId, fromDay, toDay) =>
      clients.read((client, limit) => countUsage(client, projectId, fromDay, toDay, limit)),
    listRejected: (query, signal) =>
      queue.run(query.projectId, signal, () =>
        clients.read((client, either) => listRejected(client, query, either), signal),
      ),
    countRejected: (filter, signal) =>
      queue.run(filter.projectId, signal, () =>
        clients.read((client, either) => countRejected(client, filter, either), signal),
      ),
    markReplayed: async rejects => {
      await inserter.insert({
        table: 'replayed_rejects',
        columns: replayedColumns,
        rows: rejects,
        write: writeReplayedRow,
      })
    },
    listReplays: (query, signal) =>
      queue.run(query.projectId, signal, () =>
        clients.read((client, either) => listReplays(client, query, either), signal),
      ),
    findReplay: (projectId, uuid, signal) =>
      queue.run(projectId, signal, () =>
        clients.read((client, either) => findReplay(client, projectId, uuid, either), signal),
      ),
    listEventNames: (query, signal) =>
      queue.run(query.projectId, signal, () =>
        clients.read((client, either) => listEventNames(client, query, either), signal),
      ),
    listPropertyNames: (query, signal) =>
      queue.run(query.projectId, signal, () =>
        clients.read((client, either) => listPropertyNames(client, query, either), signal),
      ),
    countSurveyEvents: (query, signal) =>
      queue.run(query.projectId, signal, () =>
        clients.read((client, either) => countSurveyEvents(client, query, either), signal),
      ),
    publishJob: importJobId => publishJob(clients, importJobId),
    discardJob: importJobId => discardJob(clients, importJobId),
    findHeldRows: (instance, markId) => findHeldRows(clients, instance, markId),
    writeMark: mark => writeMark(clients, mark),
    ping: async () => {
      await clients.read(async (client, limit) => {
        const result = await client.query({ query: 'SELECT 1', format: 'JSONCompactEachRow', abort_signal: limit })
        return result.json()
      })
    },
    close: () => clients.close(),
  }
}
