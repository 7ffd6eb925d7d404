// The event store on ClickHouse, embedded or a server. Connects the queries and inserts of this folder to the ports, one
// function per port, and bounds how many queries a project may run.

import { createQueryQueue, type RunProjectQuery } from '#adapters/clickhouse/connection/query-queue.ts'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { ProjectQueue } from '#core/project-queue.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventExports, EventQueries } from '#ports/events/event-queries.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import type { EventStoreUpkeep } from '#ports/events/event-store-upkeep.ts'
import type { EventWriter } from '#ports/events/event-writer.ts'
import type { FlagUsageUpkeep, InsightQueries } from '#ports/events/insight-queries.ts'
import type { RecordingStore } from '#ports/events/recording-store.ts'
import type { RejectStore } from '#ports/events/reject-store.ts'
import {
  type ClickHouseClient,
  type ClickHouseClients,
  type ClickHouseEndpoint,
  createClickHouseClients,
} from './connection/clickhouse-clients.ts'
import { type ExportLimits, openEventExport, usualExportLimits } from './exports/event-export.ts'
import { createExportQueries, type ExportQueriesOptions } from './exports/export-queries.ts'
import { listBusyFlags, listDaysOfMovedIds } from './insights/busy-flags.ts'
import { findFirstEventTime } from './insights/first-event-time.ts'
import { countExposures } from './insights/flag-calls.ts'
import { cacheUsage, countFlagUsage, findCachedUsage } from './insights/flag-usage.ts'
import { countTrend } from './insights/trend-counts.ts'
import { type MigrateOptions, migrateEventStore } from './migrate.ts'
import { findChargedTimes } from './queries/charged-times.ts'
import { listEventNames, listPropertyNames } from './queries/definition-queries.ts'
import { createEventHistoryQueries } from './queries/event-history.ts'
import { findEvent, listEvents } from './queries/event-queries.ts'
import { createImportedRowQueries } from './queries/imported-rows.ts'
import { findOverrides } from './queries/override-queries.ts'
import { listPropertyValues } from './queries/property-values.ts'
import { findRecording, listRecordings } from './queries/recording-queries.ts'
import { countRejectedEvents, listRejectedEvents } from './queries/rejected-queries.ts'
import { countSurveyEvents } from './queries/survey-queries.ts'
import { countUsage } from './queries/usage-queries.ts'
import { createSqlSetUp } from './sql/set-up.ts'
import { createSqlQueries } from './sql/sql-queries.ts'
import { createPersonEraser } from './writing/erase-persons.ts'
import { findErasureCounts } from './writing/erasure-counts.ts'
import {
  eventColumns,
  overrideColumns,
  recordingColumns,
  rejectedColumns,
  replayedColumns,
  writeEventRow,
  writeOverrideRow,
  writeRecordingRow,
  writeRejectedRow,
  writeReplayedRow,
} from './writing/event-rows.ts'
import { deleteExpiredRows } from './writing/expired-rows.ts'
import { arrivalColumns, listDaysOfFlagCalls, writeFlagCallDayRow } from './writing/flag-call-days.ts'
import { deduplicatedColumns, findFlagCalls, writeDeduplicatedRow } from './writing/flag-calls.ts'
import { deleteSharedJobRows, discardJobPartitions, publishJobPartitions } from './writing/import-partitions.ts'
import { createRowInserter, type RowInserter, type TableRows } from './writing/insert-rows.ts'
import { addKnownProperties, countPendingDistinctIds } from './writing/known-properties.ts'
import { createSubjectMirror } from './writing/mirror-rows.ts'
import { findRowRanges, writeStoreMark } from './writing/row-ranges.ts'

export interface ClickHouseEventStoreOptions {
  /** Called at first use and after each failure to connect, since the embedded engine's port changes when it restarts. */
  readonly endpoint: () => ClickHouseEndpoint | null
  /** Supplies `created_at`, which decides which copy of an event is the later one. */
  readonly clock: Clock
  /** `PENNON_QUERY_TIMEOUT_SECONDS`; the embedded engine must be prepared with the same value. Default 8. */
  readonly queryTimeoutSeconds?: number
  /** `PENNON_REJECT_RETENTION_DAYS`. Default 30. */
  readonly rejectRetentionDays?: number
  /**
   * Whether this is the embedded engine, in which the worker deletes expired rows by its clock (`deleteExpired`). Default:
   * false.
   */
  readonly isEmbedded?: boolean
  /** Free bytes on the disk of the tables; absent where unknown. */
  readonly freeBytes?: () => number
  /** Bounds how much of an export is read at once; small in tests. */
  readonly exports?: Partial<ExportLimits & ExportQueriesOptions>
}

/**
 * How many list queries of one project may run, and how many may wait. Scripts send many at once; further queries are
 * refused.
 */
const queueLimits = { runningMax: 4, waitingMax: 16 }
/**
 * Limits for queries of insights, which a dashboard requests all at once. Each may keep a core busy for seconds, so fewer
 * may run at once than list queries.
 */
const insightQueueLimits = { runningMax: 2, waitingMax: 16 }
/**
 * Limits for look-ups of import batches. Anyone with a project's public key may cause such look-ups, so they take no slots
 * of user queries.
 */
const storedQueueLimits = { runningMax: 2, waitingMax: 6 }
/** Limits for SQL of users and their dashboards. */
const sqlQueueLimits = { runningMax: 2, waitingMax: 16 }

/** Opens no connection before the first call. */
export function createClickHouseEventStore(options: ClickHouseEventStoreOptions): EventStore {
  const { clock, queryTimeoutSeconds = 8, rejectRetentionDays = 30, isEmbedded = false } = options
  const clients = createClickHouseClients({ endpoint: options.endpoint, queryTimeoutSeconds })
  const inserter = createRowInserter(clients)
  const askIn =
    (queue: ProjectQueue): RunProjectQuery =>
    (projectId, signal, query) =>
      queue.run(projectId, signal, () => clients.read(query, signal))
  const ask = askIn(createQueryQueue(queueLimits))
  return {
    ...createWriter(clients, inserter, clock),
    ...createUpkeep(clients, { rejectRetentionDays, freeBytes: options.freeBytes, isEmbedded }),
    ...createQueries(ask),
    ...createInsights(askIn(createQueryQueue(insightQueueLimits))),
    ...createRejects(ask, inserter),
    ...createRecordings(ask),
    ...createExports(clients, options.exports),
    ...createSubjectMirror(clients, inserter),
    ...createPersonEraser(clients),
    ...createFlagUsageUpkeep(clients),
    ...createImportedRowQueries(clients, { ask, askStored: askIn(createQueryQueue(storedQueueLimits)) }),
    ...createEventHistoryQueries(clients),
    ...createSqlQueries({
      clients,
      queryTimeoutSeconds,
      setUp: createSqlSetUp(clients, queryTimeoutSeconds),
      queue: createQueryQueue(sqlQueueLimits),
    }),
    countUsage: (projectId, fromDay, toDay, signal) =>
      clients.count((client, stop) => countUsage(client, projectId, fromDay, toDay, stop), signal),
    close: () => clients.close(),
  }
}

function createWriter(clients: ClickHouseClients, inserter: RowInserter, clock: Clock): EventWriter {
  let lastInsertedAtMs = 0
  return {
    async insert({
      events,
      pendingEvents,
      overrides,
      recordings,
      rejected,
      deduplicated = [],
      erasures,
      areRestored = false,
    }) {
      // This time never decreases: otherwise, after a clock correction, a later copy of a row would lose to the earlier
      // copy.
      const insertedAtMs = Math.max(clock.nowMs(), lastInsertedAtMs)
      lastInsertedAtMs = insertedAtMs
      const insert = <Row>(table: string, columns: string, rows: readonly Row[], write: TableRows<Row>['write']) =>
        inserter.insert({ table, columns, rows, write })
      const countErasures = ({ projectId }: { readonly projectId: number }) => erasures?.get(projectId) ?? 0
      const writeEvent: TableRows<StoredEvent>['write'] = (to, row) =>
        writeEventRow(to, row, insertedAtMs, { isRestored: areRestored, erasures: countErasures(row) })
      const refusedEvents = await insert('events', eventColumns, events, writeEvent)
      const refusedPending = await insert('events_pending', eventColumns, pendingEvents, writeEvent)
      await insert('person_distinct_id_overrides', overrideColumns, overrides, (to, row) =>
        writeOverrideRow(to, row, insertedAtMs, countErasures(row)),
      )
      await insert('deduplicated_flag_calls', deduplicatedColumns, deduplicated, (to, row) =>
        writeDeduplicatedRow(to, row, countErasures(row)),
      )
      await insert('flag_call_arrivals', arrivalColumns, listDaysOfFlagCalls(events, deduplicated), writeFlagCallDayRow)
      const refusedRecordings = await insert('replay_messages', recordingColumns, recordings, (to, row) =>
        writeRecordingRow(to, row, insertedAtMs, countErasures(row)),
      )
      await insert('rejected_events', rejectedColumns, rejected, (to, row) =>
        writeRejectedRow(to, row, countErasures(row)),
      )
      return {
        refused: [
          ...refusedEvents.map(row => ({ list: 'events' as const, ...row })),
          ...refusedPending.map(row => ({ list: 'pendingEvents' as const, ...row })),
          ...refusedRecordings.map(row => ({ list: 'recordings' as const, ...row })),
        ],
      }
    },
    findChargedTimes: identities => findChargedTimes(clients, identities),
    findOverrides: ids => findOverrides(clients, ids),
    findFlagCalls: calls => findFlagCalls(clients, calls),
    countPendingDistinctIds: importJobId => countPendingDistinctIds(clients, importJobId),
    addKnownProperties: (importJobId, share, knownOf, signal) =>
      addKnownProperties({ clients, inserter }, importJobId, share, knownOf, signal),
    publishJob: importJobId => publishJobPartitions(clients, importJobId),
    discardJob: importJobId => discardJobPartitions(clients, importJobId),
    deleteSharedJobRows: importJobId => deleteSharedJobRows(clients, importJobId),
  }
}

function createUpkeep(clients: ClickHouseClients, migration: MigrateOptions): EventStoreUpkeep {
  return {
    migrate: () => migrateEventStore(clients, migration),
    findRowRanges: (instance, markId) => findRowRanges(clients, instance, markId),
    findErasureCounts: () => findErasureCounts(clients),
    writeMark: mark => writeStoreMark(clients, mark),
    deleteExpired: async by => {
      if (migration.isEmbedded) await deleteExpiredRows(clients, { ...by, ...migration })
    },
  }
}

/** The worker's queries for cached flag usage. They wait in no project's queue: the worker limits how many it sends. */
function createFlagUsageUpkeep(clients: ClickHouseClients): FlagUsageUpkeep {
  return {
    listBusyFlags: (projectId, since, signal) =>
      clients.count((client, stop) => listBusyFlags(client, projectId, since, stop), signal),
    listDaysOfMovedIds: (projectId, movedFromMs, signal) =>
      clients.count((client, stop) => listDaysOfMovedIds(client, projectId, movedFromMs, stop), signal),
    listCachedUsage: (query, signal) => clients.count((client, stop) => findCachedUsage(client, query, stop), signal),
    cacheUsage: (query, signal) => cacheUsage(clients, query, signal),
  }
}

/** Wraps a query so that it waits until its project may run another query. */
function limitPerProject(ask: RunProjectQuery) {
  return <Query extends { readonly projectId: number }, Answer>(
    run: (client: ClickHouseClient, query: Query, signal: AbortSignal) => Promise<Answer>,
  ) =>
    (query: Query, signal?: AbortSignal): Promise<Answer> =>
      ask(query.projectId, signal, (client, either) => run(client, query, either))
}

function createQueries(ask: RunProjectQuery): EventQueries {
  const turn = limitPerProject(ask)
  return {
    listEvents: turn(listEvents),
    findEvent: (seen, uuid, signal) =>
      ask(seen.projectId, signal, (client, either) => findEvent(client, seen, uuid, either)),
    listEventNames: turn(listEventNames),
    listPropertyNames: turn(listPropertyNames),
    listPropertyValues: turn(listPropertyValues),
    countSurveyEvents: turn(countSurveyEvents),
  }
}

function createInsights(ask: RunProjectQuery): InsightQueries {
  const turn = limitPerProject(ask)
  return {
    findFirstEventTime: turn(findFirstEventTime),
    countExposures: turn(countExposures),
    countFlagUsage: turn(countFlagUsage),
    countTrend: turn(countTrend),
  }
}

function createRejects(ask: RunProjectQuery, inserter: RowInserter): RejectStore {
  const turn = limitPerProject(ask)
  return {
    listRejected: turn(listRejectedEvents),
    countRejected: turn(countRejectedEvents),
    async markReplayed(rows) {
      await inserter.insert({ table: 'replayed_rejects', columns: replayedColumns, rows, write: writeReplayedRow })
    },
  }
}

function createRecordings(ask: RunProjectQuery): RecordingStore {
  return {
    listRecordings: limitPerProject(ask)(listRecordings),
    findRecording: (projectId, uuid, signal) =>
      ask(projectId, signal, (client, either) => findRecording(client, projectId, uuid, either)),
  }
}

function createExports(clients: ClickHouseClients, given: ClickHouseEventStoreOptions['exports'] = {}): EventExports {
  const queries = createExportQueries(clients, given)
  const limits = { ...usualExportLimits, ...given }
  return { openEventExport: (query, signal) => openEventExport(queries(signal), query, limits) }
}
