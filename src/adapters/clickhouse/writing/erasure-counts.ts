// Reads the highest erasure counts that stored rows record.

import type { ErasureCount } from '#core/persons/erasure.ts'
import { type ClickHouseClients, longReadSettings, readRows } from '../connection/clickhouse-clients.ts'
import { versionsPerErasure } from '../parameters/override-version.ts'

/** Tables whose rows record how often persons of their project had been erased, with SQL of that count. */
const countOf: Readonly<Record<string, string>> = {
  ...{ events: 'erasures_before', events_pending: 'erasures_before', deduplicated_flag_calls: 'erasures_before' },
  ...{ rejected_events: 'erasures_before', replay_messages: 'erasures_before' },
  person_distinct_id_overrides: `intDiv(version, ${versionsPerErasure})`,
}

/** See `EventStoreUpkeep.findErasureCounts`. */
export function findErasureCounts(clients: Pick<ClickHouseClients, 'write'>): Promise<ErasureCount[]> {
  return clients.write(async (client, database) => {
    const counts = Object.entries(countOf).map(
      ([table, count]) => `SELECT project_id, toUInt32(max(${count})) AS erasures
        FROM ${database}.${table} GROUP BY project_id`,
    )
    const rows = await readRows<[number, number]>(client, undefined, {
      query: `SELECT project_id, max(erasures) FROM (${counts.join(' UNION ALL ')})
        GROUP BY project_id HAVING max(erasures) > 0`,
      clickhouse_settings: longReadSettings,
    })
    return rows.map(([projectId, count]) => ({ projectId, count }))
  })
}
