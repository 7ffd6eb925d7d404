// Heap: rows of its tables, from Heap Connect or a one-off export. The table of a row decides how it is converted; see
// `heap-events.ts` and `heap-users.ts`. Source: docs/wire/import.md §1.4.

import type { JsonObject } from '#core/json.ts'
import { rootUuid } from '#importer/records/deterministic-uuid.ts'
import { chooseId, legalId } from '#importer/records/distinct-ids.ts'
import { isLink } from '#importer/records/generated-events.ts'
import type { ImportSource, SourceFact, SourceRecord } from '#importer/records/import-source.ts'
import { type Conversion, RecordReject, skipRecord } from '#importer/records/imported-event.ts'
import { SourceConfig } from '#importer/records/source-config.ts'
import { convertHeapEvent } from './heap-events.ts'
import { type HeapLookups, readHeapTime } from './heap-lookups.ts'
import { findHeapTable } from './heap-tables.ts'
import { convertHeapUser, readHeapUserId, readHeapUserTime } from './heap-users.ts'

const identityFact = 'heap_identity'

export const heap: ImportSource = {
  name: 'heap',
  summary: 'tables of Heap Connect or of a one-off export: users, pageviews, user_migrations, one per labelled event',
  prepare(config, context) {
    const keys = new SourceConfig('heap', config)
    const configuredTable = keys.text('table')
    const identities = keys.texts('identities')
    keys.end()
    const lookups: HeapLookups = {
      window: context,
      identityOf: userId =>
        userId === null ? null : (legalId(identities.get(userId)) ?? context.findFact(identityFact, userId)),
    }
    const tableOf = (record: SourceRecord) => configuredTable ?? findHeapTable(record)
    return {
      convert: record => convertRow(tableOf(record), record.value, lookups),
      factsOf: record => (tableOf(record) === 'users' ? readIdentityFacts(record.value) : []),
      timeOf: record =>
        tableOf(record) === 'users'
          ? readHeapUserTime(record.value, context)
          : readHeapTime(record.value, 'time', context),
    }
  },
}

function convertRow(table: string | null, row: JsonObject, lookups: HeapLookups): Conversion {
  switch (table) {
    case null:
      throw new RecordReject('event_missing', 'table', 'neither the file nor the row identifies its table')
    case 'sessions':
      return skipRecord('session_marker')
    case 'all_events':
      // The same events are also in their own tables, and only there with their properties.
      return skipRecord('duplicate_in_source')
    case 'users':
      return convertHeapUser(row, lookups)
    case 'user_migrations':
      return convertMigration(row, lookups)
    default:
      return convertHeapEvent(table, row, lookups)
  }
}

function readIdentityFacts(row: JsonObject): readonly SourceFact[] {
  const userId = readHeapUserId(row)
  const identity = legalId(row.identity)
  return userId === null || identity === null ? [] : [{ kind: identityFact, key: userId, value: identity }]
}

/** Two Heap users that are the same person. */
function convertMigration(row: JsonObject, { identityOf, window }: HeapLookups): Conversion {
  const alias = chooseId([{ value: row.from_user_id, field: 'from_user_id' }], 'from_user_id')
  const target = chooseId([{ value: row.to_user_id, field: 'to_user_id' }], 'to_user_id')
  const distinctId = identityOf(target) ?? target
  const timeUs = readHeapTime(row, 'time', window)
  if (!isLink({ userId: distinctId, deviceId: alias })) return skipRecord('filtered')
  const uuid = rootUuid('alias', 'heap', distinctId, alias)
  const sourceName = 'user_migrations'
  return { events: [{ uuid, event: '$create_alias', sourceName, distinctId, timeUs, properties: { alias } }] }
}
