// The flag calls that projects deduplicate. Before a chunk is applied, finds which kinds of call are already stored for the
// same distinct ids and days; writes the rows that count the deduplicated calls. Uses the connection of the inserts, like
// every query of a worker.

import { TupleParam } from '@clickhouse/client'
import { isStorableTime } from '#core/events/storable-time.ts'
import type { EventIdentity } from '#core/events/stored-event.ts'
import { isUuid } from '#core/events/uuid.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import {
  type DeduplicatedCall,
  flagCallEventName,
  flagCallKindKeys,
  type StoredFlagCall,
} from '#core/processing/deduplicate-flag-calls.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import { type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import { splitIntoLists } from '../parameters/split-into-lists.ts'
import type { RowWriteResult } from './event-rows.ts'
import type { RowBinaryWriter } from './row-binary.ts'

/** The characters that a call takes in a field in addition to its distinct id. */
const charsPerCall = 70
const listsPerQueryMax = 100

type CallRow = [projectId: number, day: number, distinctId: string, kind: string[], uuids: string[]]

/** See `EventWriter.findFlagCalls`. */
export async function findFlagCalls(
  clients: Pick<ClickHouseClients, 'write'>,
  calls: readonly EventIdentity[],
): Promise<StoredFlagCall[]> {
  const storable = calls.filter(({ uuid, timestampMs }) => isUuid(uuid) && isStorableTime(timestampMs))
  const lists = splitIntoLists(storable, ({ distinctId }) => charsPerCall + distinctId.length)
  const found: StoredFlagCall[] = []
  for (let from = 0; from < lists.length; from += listsPerQueryMax)
    found.push(...(await findCallsIn(clients, lists.slice(from, from + listsPerQueryMax))))
  return found
}

async function findCallsIn(
  clients: Pick<ClickHouseClients, 'write'>,
  lists: readonly (readonly EventIdentity[])[],
): Promise<StoredFlagCall[]> {
  const params = lists.map((_, index) => `{calls${index}:Array(Tuple(UInt32, Date32, String, UUID))}`)
  const asked = `(SELECT arrayJoin(arrayConcat(${params.join(', ')})) AS call)`
  const kind = flagCallKindKeys.map(key => `JSONExtractRaw(properties, '${key}')`).join(', ')
  const rows = await clients.write(async (client, database) => {
    return readRows<CallRow>(client, undefined, {
      query: `SELECT project_id, toInt32(toDate32(timestamp)) AS day, distinct_id, [${kind}] AS kind,
          arrayMap(id -> toString(id), groupUniqArrayIf(uuid, uuid IN (SELECT call.4 FROM ${asked})))
        FROM ${database}.events
        WHERE (project_id, toDate32(timestamp), event, distinct_id)
            IN (SELECT call.1, call.2, {event:String}, call.3 FROM ${asked})
          AND import_job_id = 0
        GROUP BY project_id, day, distinct_id, kind`,
      query_params: {
        event: flagCallEventName,
        ...Object.fromEntries(lists.map((list, index) => [`calls${index}`, list.map(toTuple)])),
      },
    })
  })
  return rows.map(([projectId, day, distinctId, texts, uuids]) => ({
    projectId,
    timestampMs: day * dayMs,
    distinctId,
    properties: parseProperties(texts),
    uuids,
  }))
}

function parseProperties(texts: readonly string[]): JsonObject {
  const properties: JsonObject = {}
  for (const [index, key] of flagCallKindKeys.entries())
    if (texts[index] !== '') properties[key] = parseJson(texts[index]!)
  return properties
}

function toTuple({ projectId, timestampMs, distinctId, uuid }: EventIdentity): TupleParam {
  return new TupleParam([projectId, utcDay(timestampMs), distinctId, uuid])
}

export const deduplicatedColumns =
  'project_id, uuid, distinct_id, timestamp, charged_at, feature_flag, feature_flag_response, row_version, erasures_before'

/**
 * Writes the row of one call. Of several copies of a call, the copy that was accepted first counts, on the day on which it
 * was accepted.
 */
export function writeDeduplicatedRow(to: RowBinaryWriter, call: DeduplicatedCall, erasures: number): RowWriteResult {
  to.uint32(call.projectId)
  if (!to.uuid(call.uuid)) return { refused: 'uuid is not a UUID' }
  to.text(call.distinctId)
  to.int64(call.timestampMs)
  to.int64(call.chargedAtMs)
  to.text(call.flag)
  to.text(call.response)
  to.int64(Number.MAX_SAFE_INTEGER - call.chargedAtMs)
  to.uint32(erasures)
  return 'written'
}
