// The tables of the event store, as forward-only migrations, like those of the state database. The store records which
// migrations ran (`schema_version`), and these do not run again: the engine rewrites a table's definition for any ALTER,
// and on a full disk it leaves an empty definition, with which it cannot start. Several processes may run a migration at
// once, and an interrupted migration runs again, so every statement can be repeated (`IF NOT EXISTS`). Source:
// docs/wire/ingestion.md 8.1, 10.

import { cachedUsageDays } from '#ports/events/insight-queries.ts'
import { recordingRetentionDays } from '#ports/events/recording-store.ts'
import { wideFlagSet } from './insights/property-access.ts'

export interface SchemaOptions {
  readonly rejectRetentionDays: number
  /** Whether rows are deleted by the worker (`writing/expired-rows.ts`) instead of by a TTL. */
  readonly isEmbedded: boolean
}

export interface EventStoreMigration {
  readonly name: string
  readonly statements: (database: string, options: SchemaOptions) => readonly string[]
}

/** The most bytes of an event's flags, names included, that `flag_set` holds. */
const flagSetBytesMax = 4_096

/**
 * Anyone with a project's key may send megabytes of flags, a new combination with each event, and the column's dictionary
 * is read as a whole by the queries of other projects, too. So flags of more than a few kilobytes are stored only in the
 * map.
 */
const boundedFlagSet = `if(arraySum(text -> length(text), mapKeys(flags)) + arraySum(text -> length(text), mapValues(flags))
      > ${flagSetBytesMax},
    '${wideFlagSet}',
    concat('&', arrayStringConcat(arrayMap(
      (flag, value) -> concat(encodeURLComponent(flag), '=', encodeURLComponent(value), '&'),
      mapKeys(mapSort(flags)), mapValues(mapSort(flags))))))`

/**
 * One identity (project, UTC day, name, distinct id, uuid) is one row for every read with FINAL; the highest
 * `row_version` wins. Partitions are months of arrival, not of the event: anyone with the public key can send events
 * of hundreds of months. `toDate32`, because `toDate` wraps before 1970 and after 2149.
 *
 * `flag_called` and `flag_response` contain the called flag and its answer as the event names them, so that counting reads
 * no properties; the worker writes them, since this engine's parser refuses some properties that ours accepts. `flag_set`
 * has the values of all `$feature/…` as one text, `&checkout=control&search=true&`: few combinations occur, and the engine
 * looks for a flag once in each, which takes a tenth of reading the map. `erasures_before`: how often persons of the
 * project had been erased when the row was made (docs/decisions/0064).
 */
const eventColumns = `
  project_id UInt32,
  uuid UUID,
  event String CODEC(ZSTD(1)),
  distinct_id String CODEC(ZSTD(1)),
  timestamp DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  captured_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  charged_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  created_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  lane LowCardinality(String),
  historical_migration Bool,
  import_job_id UInt32,
  import_partition UInt32,
  row_version UInt64 CODEC(Delta, ZSTD(1)),
  properties String CODEC(ZSTD(1)),
  flags Map(LowCardinality(String), String),
  flag_set LowCardinality(String) DEFAULT ${boundedFlagSet} CODEC(ZSTD(1)),
  elements_chain String CODEC(ZSTD(1)),
  person_id UUID,
  person_created_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  person_properties String CODEC(ZSTD(1)),
  person_mode LowCardinality(String),
  \`$group_0\` String CODEC(ZSTD(1)),
  \`$group_1\` String CODEC(ZSTD(1)),
  \`$group_2\` String CODEC(ZSTD(1)),
  \`$group_3\` String CODEC(ZSTD(1)),
  \`$group_4\` String CODEC(ZSTD(1)),
  \`$session_id\` String CODEC(ZSTD(1)),
  \`$window_id\` String CODEC(ZSTD(1)),
  flag_called LowCardinality(String) CODEC(ZSTD(1)),
  flag_response LowCardinality(String) CODEC(ZSTD(1)),
  inserted_at DateTime64(3, 'UTC') ALIAS created_at,
  ${[0, 1, 2, 3, 4].map(emptyGroupColumns).join(',\n  ')},
  erasures_before UInt32 CODEC(ZSTD(1))`

/** SQL of columns that users of PostHog's tables expect. They are always empty, and nothing is stored for them. */
function emptyGroupColumns(index: number): string {
  return `group${index}_properties String ALIAS '', group${index}_created_at DateTime64(3, 'UTC') ALIAS toDateTime64(0, 3, 'UTC')`
}

const eventEngine = `ENGINE = ReplacingMergeTree(row_version)
  PARTITION BY (import_partition, toYYYYMM(captured_at))
  ORDER BY (project_id, toDate32(timestamp), event, distinct_id, uuid)`

/**
 * The TTL of the tables of rejects on an operator's server, in the spelling in which the server shows it in definitions.
 */
export function buildRejectTtl({ rejectRetentionDays }: SchemaOptions): string {
  return `toDateTime(received_at) + toIntervalDay(${rejectRetentionDays})`
}

const baseline: EventStoreMigration = {
  name: 'baseline',
  statements: (database, options) =>
    Object.entries(baselineTables(options)).map(
      ([table, terms]) => `CREATE TABLE IF NOT EXISTS ${database}.${table} ${terms}`,
    ),
}

/** The regular expression reads properties that the engine's parser refuses: 30-digit numbers, half surrogate pairs. */
const linkedTextSql = (key: string) => `if(isValidJSON(properties), JSONExtractString(properties, '${key}'),
        extract(properties, '"${key.replace('$', '[$]')}"\\\\s*:\\\\s*"([^"\\\\\\\\]*)"'))`

/** SQL of the same check as `isIllegalDistinctId` at the time when the column `linked_id` was added. */
const bareId = `replaceRegexpOne(id, '(?s)^(?:\\'(.*)\\'|"(.*)")$', '\\\\1\\\\2')`
const isLegalId = `match(id, '\\\\S') AND position(id, '\\0') = 0 AND lengthUTF8(id) <= 400
        AND lower(${bareId}) NOT IN ('anonymous', 'guest', 'distinctid', 'distinct_id', 'id', 'not_authenticated', 'email',
          'undefined', 'true', 'false')
        AND ${bareId} NOT IN ('[object Object]', 'NaN', 'None', 'none', 'null', '0', '$posthog_cookieless')`

/** Computes `linked_id` for rows that existed before the column was added; for new rows, the worker writes it. */
const linkedIdOfRow = `arrayElement(arrayFilter(
      other -> other != distinct_id AND arrayAll(id -> ${isLegalId}, [distinct_id, other]),
      [multiIf(
        person_mode != 'full' OR lane = 'ai', '',
        event = '$identify', ${linkedTextSql('$anon_distinct_id')},
        event IN ('$create_alias', '$merge_dangerously'), ${linkedTextSql('alias')},
        '')]), 1)`

/** Adds the columns that a fold over a person's events needs (docs/decisions/0081). */
const history: EventStoreMigration = {
  name: 'history',
  statements: database =>
    ['events', 'events_pending'].map(
      table => `ALTER TABLE ${database}.${table} ADD COLUMN IF NOT EXISTS log_stream LowCardinality(String),
        ADD COLUMN IF NOT EXISTS log_offset UInt64 CODEC(Delta, ZSTD(1)),
        ADD COLUMN IF NOT EXISTS sent_later_ms Int64 CODEC(ZSTD(1)),
        ADD COLUMN IF NOT EXISTS linked_id String DEFAULT ${linkedIdOfRow} CODEC(ZSTD(1))`,
    ),
}

/**
 * If one of these tables is missing, the next start creates it again. A migration that drops a table has to remove its name
 * here.
 */
export const baselineTableNames = Object.keys(baselineTables({ rejectRetentionDays: 0, isEmbedded: true }))

/**
 * The place in this list, from 1, is the version. Append only: a released migration is never edited. A changed retention of
 * recordings or cached usage also needs a new migration.
 */
export const eventStoreMigrations: readonly EventStoreMigration[] = [baseline, history]

function baselineTables(options: SchemaOptions): Readonly<Record<string, string>> {
  const ttl = (terms: string) => (options.isEmbedded ? '' : `TTL ${terms}`)
  return {
    events: `(${eventColumns}) ${eventEngine}`,
    // Events of import jobs that are not published. It has the structure of `events`: otherwise partitions could not be
    // moved between the two tables.
    events_pending: `(${eventColumns}) ${eventEngine}`,
    // stored_at: when the override was written, so that a merge is noticed in cached usage.
    person_distinct_id_overrides: `(
      project_id UInt32,
      distinct_id String,
      person_id UUID,
      version UInt64,
      stored_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
    ) ENGINE = ReplacingMergeTree(version) ORDER BY (project_id, distinct_id)`,
    // The mirror: current persons and groups, as the state database has them. A row's version is the number of a commit of
    // the state database, so that a group that was created again after its deletion wins over its deleted row.
    persons: `(
      project_id UInt32,
      uuid UUID,
      created_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      is_identified Bool,
      properties String CODEC(ZSTD(1)),
      version UInt64 CODEC(Delta, ZSTD(1)),
      is_deleted UInt8
    ) ENGINE = ReplacingMergeTree(version) ORDER BY (project_id, uuid)`,
    groups: `(
      project_id UInt32,
      group_type_index UInt8,
      group_key String CODEC(ZSTD(1)),
      properties String CODEC(ZSTD(1)),
      created_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      version UInt64 CODEC(Delta, ZSTD(1)),
      is_deleted UInt8
    ) ENGINE = ReplacingMergeTree(version) ORDER BY (project_id, group_type_index, group_key)`,
    // The row with the highest version tells whether the mirror is filled.
    subject_mirror_fill: `(
      fill_id String,
      is_complete UInt8,
      version UInt64
    ) ENGINE = ReplacingMergeTree(version) ORDER BY tuple()`,
    // source: the fields of the request that are needed to send a reject through capture again.
    rejected_events: `(
      reject_id String,
      project_id UInt32,
      received_at DateTime64(3, 'UTC'),
      reason LowCardinality(String),
      field String,
      lane LowCardinality(String),
      import_job_id UInt32,
      uuid String,
      event String,
      distinct_id String,
      body String CODEC(ZSTD(1)),
      source String CODEC(ZSTD(1)),
      erasures_before UInt32 CODEC(ZSTD(1))
    ) ENGINE = ReplacingMergeTree
    PARTITION BY toYYYYMM(received_at)
    ORDER BY (project_id, received_at, reject_id)
    ${ttl(`${buildRejectTtl(options)} DELETE`)}`,
    // Replays of rejects. Not a column of `rejected_events`: a repeated chunk writes its rejects again, which would reset
    // the column.
    replayed_rejects: `(
      project_id UInt32,
      reject_id String,
      received_at DateTime64(3, 'UTC'),
      replayed_at DateTime64(3, 'UTC')
    ) ENGINE = ReplacingMergeTree
    ORDER BY (project_id, reject_id)
    ${ttl(`${buildRejectTtl(options)} DELETE`)}`,
    // Partitions are days of storage, so that rows that expire together are dropped together, without being read. Items are
    // already packed; granules are small, because one row may have megabytes of items.
    replay_messages: `(
      project_id UInt32,
      uuid UUID,
      session_id String CODEC(ZSTD(1)),
      window_id String CODEC(ZSTD(1)),
      distinct_id String CODEC(ZSTD(1)),
      snapshot_source LowCardinality(String),
      lib LowCardinality(String),
      item_count UInt32,
      items_bytes UInt64,
      timestamp DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      row_version UInt64 CODEC(Delta, ZSTD(1)),
      stored_at DateTime('UTC') DEFAULT now() CODEC(Delta, ZSTD(1)),
      items String CODEC(NONE) ${ttl(`stored_at + toIntervalDay(${recordingRetentionDays.items})`)},
      erasures_before UInt32 CODEC(ZSTD(1))
    ) ENGINE = ReplacingMergeTree(row_version)
    PARTITION BY toYYYYMMDD(stored_at)
    ORDER BY (project_id, session_id, uuid)
    ${ttl(`stored_at + toIntervalDay(${recordingRetentionDays.row}) DELETE`)}
    SETTINGS merge_with_ttl_timeout = 3600, index_granularity = 1024, index_granularity_bytes = 4194304,
      merge_max_block_size = 1024, merge_max_block_size_bytes = 4194304`,
    // Flag calls that were deduplicated: they are not stored as events, but count as usage. They have the same kind of
    // identity as events.
    deduplicated_flag_calls: `(
      project_id UInt32,
      uuid UUID,
      distinct_id String CODEC(ZSTD(1)),
      timestamp DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      charged_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      feature_flag LowCardinality(String),
      feature_flag_response String CODEC(ZSTD(1)),
      row_version UInt64 CODEC(Delta, ZSTD(1)),
      erasures_before UInt32 CODEC(ZSTD(1))
    ) ENGINE = ReplacingMergeTree(row_version)
    PARTITION BY toYYYYMM(charged_at)
    ORDER BY (project_id, toDate32(timestamp), distinct_id, uuid)`,
    // Cached usage of flags, per bucket (docs/decisions/0046). The sum of a day's arrivals shows whether cached usage is
    // still valid: each insert of calls of the day adds a random number.
    flag_call_arrivals: `(
      project_id UInt32,
      day Date32,
      token UInt64
    ) ENGINE = SummingMergeTree(token) ORDER BY (project_id, day)`,
    cached_flag_usage: `(
      project_id UInt32,
      flag String,
      from_ms Int64,
      end_ms Int64,
      arrivals UInt64,
      computed_at DateTime64(3, 'UTC'),
      values Array(String),
      calls Array(UInt64),
      persons Array(UInt64),
      rest_calls UInt64,
      rest_persons UInt64,
      stored_at DateTime('UTC') DEFAULT now()
    ) ENGINE = ReplacingMergeTree
    ORDER BY (project_id, flag, from_ms, end_ms)
    ${ttl(`stored_at + toIntervalDay(${cachedUsageDays}) DELETE`)}`,
    // Marks by which a worker recognises its store, also after the state was restored from an older backup. Each instance
    // writes to a ring of slots, in which no mark is replaced until newer marks exist.
    worker_marks: `(
      instance String,
      slot UInt32,
      id String,
      former String,
      written_at DateTime64(6, 'UTC')
    ) ENGINE = ReplacingMergeTree(written_at) ORDER BY (instance, slot)`,
    // The subjects whose rows are being removed. Mutations look them up here instead of naming them, since the engine keeps
    // the texts of mutations.
    erased_subjects: `(
      project_id UInt32,
      erasures UInt32,
      kind LowCardinality(String),
      subject String
    ) ENGINE = MergeTree ORDER BY (project_id, erasures, kind, subject)`,
    // Properties that are being added to rows of an import job (docs/decisions/0065); empty unless a job is being
    // published.
    known_person_properties: `(
      import_job_id UInt32,
      attempt UInt64,
      distinct_id String,
      known String CODEC(ZSTD(1))
    ) ENGINE = MergeTree PARTITION BY (import_job_id, attempt) ORDER BY distinct_id`,
  }
}
