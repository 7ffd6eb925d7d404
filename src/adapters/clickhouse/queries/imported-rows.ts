// The rows of one import job, which has separate partitions in `events_pending` and, once published, in `events`; while
// it is being published, its rows are in both tables.

import type { RunProjectQuery } from '#adapters/clickhouse/connection/query-queue.ts'
import type { EventView } from '#ports/events/event-queries.ts'
import type { ImportedRows } from '#ports/events/imported-rows.ts'
import { type ClickHouseClient, type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import { countStoredEvents } from './count-stored.ts'
import { type SelectedEventRow, storedColumns, toEventView, viewColumns } from './event-rows.ts'
import { countRowsOfImport, type JobParams, jobCondition, listRowCountsOfImport } from './imported-counts.ts'

/**
 * @param ask runs a user query in its project's queue. @param askStored runs a look-up of a batch in its project's queue
 * for look-ups. The worker's own queries use neither queue.
 */
export function createImportedRowQueries(
  clients: Pick<ClickHouseClients, 'read'>,
  { ask, askStored }: { readonly ask: RunProjectQuery; readonly askStored: RunProjectQuery },
): ImportedRows {
  return {
    countImportedRows: (projectId, importJobId, signal) =>
      countRowsOfImport(query => ask(projectId, signal, query), { project: projectId, job: importJobId }),
    listImportedCounts: (asked, signal) => listRowCountsOfImport(query => ask(asked.projectId, signal, query), asked),
    countPendingRows: (projectId, importJobId) =>
      clients.read((client, signal) => countPending(client, { project: projectId, job: importJobId }, signal)),
    findImportedRows: (projectId, importJobId, uuids, signal) =>
      ask(projectId, signal, (client, either) =>
        findRows(client, { project: projectId, job: importJobId }, uuids, either),
      ),
    countStoredEvents: async (projectId, batch) =>
      batch.summary.count === 0
        ? 0
        : askStored(projectId, undefined, (client, signal) => countStoredEvents(client, projectId, batch, signal)),
    hasRowsOfGroupType: (projectId, importJobId, typeIndex) =>
      clients.read((client, signal) => hasRowsOfType(client, { projectId, importJobId, typeIndex }, signal)),
  }
}

/** Uses FINAL, which reads in the order of the sort key and so needs little memory for any number of rows. */
async function countPending(client: ClickHouseClient, query_params: JobParams, signal: AbortSignal): Promise<number> {
  const [row] = await readRows<[number | string]>(client, signal, {
    query: `SELECT count() FROM events_pending FINAL ${jobCondition}`,
    query_params,
  })
  return Number(row![0])
}

async function findRows(
  client: ClickHouseClient,
  jobParams: JobParams,
  uuids: readonly string[],
  signal: AbortSignal,
): Promise<EventView[]> {
  if (uuids.length === 0) return []
  const found = new Map<string, EventView>()
  for (const table of ['events_pending', 'events']) {
    const rows = await readRows<SelectedEventRow>(client, signal, {
      query: `SELECT ${viewColumns} FROM (
          SELECT ${storedColumns}, person_id AS person FROM ${table} FINAL
          ${jobCondition} AND uuid IN {uuids:Array(UUID)})`,
      query_params: { ...jobParams, uuids: [...uuids] },
    })
    for (const row of rows) {
      const view = toEventView(row)
      // While the job is being published, a row may be in both tables. The uuid alone does not identify a row.
      found.set(JSON.stringify([view.uuid, view.event, view.distinctId, view.timestampMs]), view)
    }
  }
  return [...found.values()]
}

async function hasRowsOfType(
  client: ClickHouseClient,
  { projectId, importJobId, typeIndex }: { projectId: number; importJobId: number; typeIndex: number },
  signal: AbortSignal,
): Promise<boolean> {
  const rows = await readRows<[number]>(client, signal, {
    query: ['events', 'events_pending']
      .map(
        table => `SELECT 1 FROM ${table}
      PREWHERE project_id = {project:UInt32} AND import_job_id != {job:UInt32}
      WHERE "$group_${Number(typeIndex)}" != '' LIMIT 1`,
      )
      .join(' UNION ALL '),
    query_params: { project: projectId, job: importJobId },
  })
  return rows.length > 0
}
