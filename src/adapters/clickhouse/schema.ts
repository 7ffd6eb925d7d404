// The tables of the event store. A new table is made in today's form at once; an older one gets there by its upgrades. Every
// statement can run again, from several processes at once (`IF NOT EXISTS`). What has run is still left out (`isDone`):
// the engine writes the definition of a table again for any ALTER, and one that is written on a full disk is left empty:
// the engine cannot start with it.
// Source: docs/wire/ingestion.md 8.1, 10.

import { flagCallEventName, flagCallTextBytesMax } from '#core/processing/thin-flag-calls.ts'
import { keptUsageDays } from '#ports/events/flag-usage-upkeep.ts'
import { recordingRetentionDays } from '#ports/events/recording-store.ts'
import { flagNamed, responseNamed } from './insights/named-flag.ts'
import { wideFlagSet } from './insights/property-access.ts'

export interface SchemaOptions {
  readonly rejectRetentionDays: number
  /** Whether rows are deleted by the worker (`writing/expired-rows.ts`) instead of by a TTL. */
  readonly isEmbedded: boolean
}

export interface SchemaStatement {
  readonly table: string
  readonly query: string
  /**
   * Absent where the table is made; otherwise whether one that is there has this change.
   * @param definition its `create_table_query`, as the server writes it. When in doubt, it is not done.
   */
  readonly isDone?: (definition: string) => boolean
}

function createTable(database: string, table: string, terms: string): SchemaStatement {
  return { table, query: `CREATE TABLE IF NOT EXISTS ${database}.${table} ${terms}` }
}

function addColumn(database: string, table: string, column: string, terms: string): SchemaStatement {
  return {
    table,
    query: `ALTER TABLE ${database}.${table} ADD COLUMN IF NOT EXISTS ${column} ${terms}`,
    isDone: definition => definition.includes(`\`${column}\` `),
  }
}

/** @param ttl spelled as the server writes it. */
function modifyTtl(database: string, table: string, ttl: string): SchemaStatement {
  return {
    table,
    query: `ALTER TABLE ${database}.${table} MODIFY TTL ${ttl} DELETE`,
    isDone: definition => definition.slice(definition.indexOf(' ENGINE = ')).includes(` TTL ${ttl} `),
  }
}

/** Why rows have no TTL then: `writing/expired-rows.ts`. */
function removeTtls(database: string): SchemaStatement[] {
  const ofRows = ['rejected_events', 'replayed_rejects', 'replay_messages', 'kept_flag_usage'].map(table => ({
    table,
    query: `ALTER TABLE ${database}.${table} REMOVE TTL`,
    isDone: (definition: string) => !definition.slice(definition.indexOf(' ENGINE = ')).includes(' TTL '),
  }))
  const table = 'replay_messages'
  const ofItems = {
    table,
    query: `ALTER TABLE ${database}.${table} MODIFY COLUMN items REMOVE TTL`,
    isDone: (definition: string) => !definition.includes('`items` String CODEC(NONE) TTL '),
  }
  return [...ofRows, ofItems]
}

/** For rows that were stored before the worker wrote both. */
const [olderFlagCalled, olderFlagResponse] = [ofFlagCall(flagNamed), ofFlagCall(responseNamed)]

function ofFlagCall(text: string): string {
  return `if(event = '${flagCallEventName}' AND length(${text}) <= ${flagCallTextBytesMax}, ${text}, '')`
}

/** Bytes of an event's flags, names included, that `flag_set` holds. */
const flagSetBytesMax = 4_096

/**
 * Anyone with a project's key may send megabytes of flags, a new combination with each event, and the column's dictionary
 * is read as a whole by the queries of other projects, too. So more than a few kilobytes are left to the map.
 */
const boundedFlagSet = `if(arraySum(text -> length(text), mapKeys(flags)) + arraySum(text -> length(text), mapValues(flags))
      > ${flagSetBytesMax},
    '${wideFlagSet}',
    concat('&', arrayStringConcat(arrayMap(
      (flag, value) -> concat(encodeURLComponent(flag), '=', encodeURLComponent(value), '&'),
      mapKeys(mapSort(flags)), mapValues(mapSort(flags))))))`

/** Columns that older tables lack. */
const added = {
  charged_at: "DateTime64(3, 'UTC') DEFAULT captured_at CODEC(Delta, ZSTD(1))",
  flag_set: `LowCardinality(String) DEFAULT ${boundedFlagSet} CODEC(ZSTD(1))`,
  flag_called: `LowCardinality(String) DEFAULT ${olderFlagCalled} CODEC(ZSTD(1))`,
  flag_response: `LowCardinality(String) DEFAULT ${olderFlagResponse} CODEC(ZSTD(1))`,
  erasures_before: 'UInt32 CODEC(ZSTD(1))',
  source: 'String CODEC(ZSTD(1))',
  stored_at: "DateTime64(3, 'UTC') DEFAULT toDateTime64(0, 3, 'UTC') CODEC(Delta, ZSTD(1))",
}

/**
 * One identity (project, UTC day, name, distinct id, uuid) is one row for every read with FINAL; the highest
 * `row_version` wins. Partitions are months of arrival, not of the event: anyone with the public key can send events
 * of hundreds of months. `toDate32`, because `toDate` wraps before 1970 and after 2149.
 */
const eventColumns = `
  project_id UInt32,
  uuid UUID,
  event String CODEC(ZSTD(1)),
  distinct_id String CODEC(ZSTD(1)),
  timestamp DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  captured_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  charged_at ${added.charged_at},
  created_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  lane LowCardinality(String),
  historical_migration Bool,
  import_job_id UInt32,
  import_partition UInt32,
  row_version UInt64 CODEC(Delta, ZSTD(1)),
  properties String CODEC(ZSTD(1)),
  flags Map(LowCardinality(String), String),
  flag_set ${added.flag_set},
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
  flag_called ${added.flag_called},
  flag_response ${added.flag_response},
  inserted_at DateTime64(3, 'UTC') ALIAS created_at,
  ${[0, 1, 2, 3, 4].map(emptyGroupColumns).join(',\n  ')},
  erasures_before ${added.erasures_before}`

/** Columns that users of PostHog's tables know; empty, and nothing is stored for them. */
function emptyGroupColumns(index: number): string {
  return `group${index}_properties String ALIAS '', group${index}_created_at DateTime64(3, 'UTC') ALIAS toDateTime64(0, 3, 'UTC')`
}

const eventEngine = `ENGINE = ReplacingMergeTree(row_version)
  PARTITION BY (import_partition, toYYYYMM(captured_at))
  ORDER BY (project_id, toDate32(timestamp), event, distinct_id, uuid)`

/**
 * Statements in the order in which they have to run. A change of a table that was released goes into the statement that makes
 * it, and as an upgrade to the end.
 */
export function schemaStatements(
  database: string,
  { rejectRetentionDays, isEmbedded }: SchemaOptions,
): readonly SchemaStatement[] {
  const rejectTtl = `toDateTime(received_at) + toIntervalDay(${rejectRetentionDays})`
  const recordingTtl = `stored_at + toIntervalDay(${recordingRetentionDays.row})`
  const itemsTtl = `stored_at + toIntervalDay(${recordingRetentionDays.items})`
  const events = (name: string) => createTable(database, name, `(${eventColumns}) ${eventEngine}`)
  const ttl = (terms: string) => (isEmbedded ? '' : `TTL ${terms}`)
  return [
    events('events'),
    events('events_pending'),
    createTable(
      database,
      'person_distinct_id_overrides',
      `(
      project_id UInt32,
      distinct_id String,
      person_id UUID,
      version UInt64,
      stored_at ${added.stored_at}
    ) ENGINE = ReplacingMergeTree(version) ORDER BY (project_id, distinct_id)`,
    ),
    createTable(
      database,
      'rejected_events',
      `(
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
      source ${added.source},
      erasures_before ${added.erasures_before}
    ) ENGINE = ReplacingMergeTree
      PARTITION BY toYYYYMM(received_at)
      ORDER BY (project_id, received_at, reject_id)
      ${ttl(`${rejectTtl} DELETE`)}`,
    ),
    // Changes nothing after the first start, unless the setting has changed.
    ...(isEmbedded ? [] : [modifyTtl(database, 'rejected_events', rejectTtl)]),
    // Both tables alike, or partitions could not move from one to the other. Older rows are charged as before.
    ...['events', 'events_pending'].map(table =>
      addColumn(database, table, 'charged_at', `${added.charged_at} AFTER captured_at`),
    ),
    // Partitions are days of storage, so that rows that expire together are dropped together, without being read. Items
    // are already packed; granules are small, because one row may have megabytes of them.
    createTable(
      database,
      'replay_messages',
      `(
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
      items String CODEC(NONE) ${ttl(itemsTtl)},
      erasures_before ${added.erasures_before}
    ) ENGINE = ReplacingMergeTree(row_version)
      PARTITION BY toYYYYMMDD(stored_at)
      ORDER BY (project_id, session_id, uuid)
      ${ttl(`${recordingTtl} DELETE`)}
      SETTINGS merge_with_ttl_timeout = 3600, index_granularity = 1024, index_granularity_bytes = 4194304,
        merge_max_block_size = 1024, merge_max_block_size_bytes = 4194304`,
    ),
    // How to take a reject through capture again; empty in older rows.
    addColumn(database, 'rejected_events', 'source', `${added.source} AFTER body`),
    // Not a column of the rejects, since a repeated chunk writes those again.
    createTable(
      database,
      'replayed_rejects',
      `(
      project_id UInt32,
      reject_id String,
      received_at DateTime64(3, 'UTC'),
      replayed_at DateTime64(3, 'UTC')
    ) ENGINE = ReplacingMergeTree
      ORDER BY (project_id, reject_id)
      ${ttl(`${rejectTtl} DELETE`)}`,
    ),
    ...(isEmbedded ? [] : [modifyTtl(database, 'replayed_rejects', rejectTtl)]),
    // Flag calls that a project thins: they are not stored, but count as usage. Identities as for events.
    createTable(
      database,
      'thinned_flag_calls',
      `(
      project_id UInt32,
      uuid UUID,
      distinct_id String CODEC(ZSTD(1)),
      timestamp DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      charged_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      feature_flag LowCardinality(String),
      feature_flag_response String CODEC(ZSTD(1)),
      row_version UInt64 CODEC(Delta, ZSTD(1)),
      erasures_before ${added.erasures_before}
    ) ENGINE = ReplacingMergeTree(row_version)
      PARTITION BY toYYYYMM(charged_at)
      ORDER BY (project_id, toDate32(timestamp), distinct_id, uuid)`,
    ),
    // These let a worker recognise the store that it left, and the one that a state of last week left: each instance
    // has a ring of slots, in which the newest row is never replaced before a newer one exists.
    createTable(
      database,
      'worker_marks',
      `(
      instance String,
      slot UInt32,
      id String,
      former String,
      written_at DateTime64(6, 'UTC')
    ) ENGINE = ReplacingMergeTree(written_at) ORDER BY (instance, slot)`,
    ),
    // A table that was made while recordings were kept for longer or shorter takes on today's terms.
    ...(isEmbedded
      ? []
      : [
          modifyTtl(database, 'replay_messages', recordingTtl),
          {
            table: 'replay_messages',
            query: `ALTER TABLE ${database}.replay_messages MODIFY COLUMN items TTL ${itemsTtl}`,
            isDone: (definition: string) => definition.includes(`\`items\` String CODEC(NONE) TTL ${itemsTtl}`),
          },
        ]),
    // The mirror: persons and groups of today, as the state has them. A version is a commit of the state, so that a group
    // that was deleted and made again wins over its former self.
    createTable(
      database,
      'persons',
      `(
      project_id UInt32,
      uuid UUID,
      created_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      is_identified Bool,
      properties String CODEC(ZSTD(1)),
      version UInt64 CODEC(Delta, ZSTD(1)),
      is_deleted UInt8
    ) ENGINE = ReplacingMergeTree(version) ORDER BY (project_id, uuid)`,
    ),
    createTable(
      database,
      'groups',
      `(
      project_id UInt32,
      group_type_index UInt8,
      group_key String CODEC(ZSTD(1)),
      properties String CODEC(ZSTD(1)),
      created_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      version UInt64 CODEC(Delta, ZSTD(1)),
      is_deleted UInt8
    ) ENGINE = ReplacingMergeTree(version) ORDER BY (project_id, group_type_index, group_key)`,
    ),
    // Usage of flags: which flag an event says was called, and its answer, so that counting reads no properties. The
    // worker writes them, since this engine's parser refuses what ours keeps; the defaults are for rows of older versions.
    ...['events', 'events_pending'].flatMap(table => [
      addColumn(database, table, 'flag_called', `${added.flag_called} AFTER \`$window_id\``),
      addColumn(database, table, 'flag_response', `${added.flag_response} AFTER flag_called`),
    ]),
    // Whether the mirror is filled: the row of the highest version says so.
    createTable(
      database,
      'subject_mirror_fill',
      `(
      fill_id String,
      is_complete UInt8,
      version UInt64
    ) ENGINE = ReplacingMergeTree(version) ORDER BY tuple()`,
    ),
    // Insights. The values of all `$feature/…` as one text, `&checkout=control&search=true&`: few combinations occur, and the
    // engine looks for a flag once in each, which takes a tenth of reading the map. Older rows make it of their map.
    ...['events', 'events_pending'].map(table =>
      addColumn(database, table, 'flag_set', `${added.flag_set} AFTER flags`),
    ),
    // Usage of flags, kept per bucket (docs/decisions/0046). Arrivals say whether what is kept is still right: random
    // numbers that add up, one for each insert of a day's calls.
    createTable(
      database,
      'flag_call_arrivals',
      `(
      project_id UInt32,
      day Date32,
      token UInt64
    ) ENGINE = SummingMergeTree(token) ORDER BY (project_id, day)`,
    ),
    createTable(
      database,
      'kept_flag_usage',
      `(
      project_id UInt32,
      flag String,
      from_ms Int64,
      end_ms Int64,
      arrivals UInt64,
      kept_at DateTime64(3, 'UTC'),
      values Array(String),
      calls Array(UInt64),
      persons Array(UInt64),
      rest_calls UInt64,
      rest_persons UInt64,
      stored_at DateTime('UTC') DEFAULT now()
    ) ENGINE = ReplacingMergeTree
      ORDER BY (project_id, flag, from_ms, end_ms)
      ${ttl(`stored_at + toIntervalDay(${keptUsageDays}) DELETE`)}`,
    ),
    // When an override was written, so that a merge is noticed in what is kept. Of older rows it is not known.
    addColumn(database, 'person_distinct_id_overrides', 'stored_at', added.stored_at),
    // Insights: a bound for what was made of any number of flags. Rows that are there keep what they have.
    ...['events', 'events_pending'].map(table => ({
      table,
      query: `ALTER TABLE ${database}.${table} MODIFY COLUMN flag_set ${added.flag_set}`,
      isDone: (definition: string) => definition.includes(`> ${flagSetBytesMax}, '${wideFlagSet}',`),
    })),
    ...(isEmbedded ? removeTtls(database) : []),
    // Erased persons (docs/decisions/0064): how often persons of the project had been erased when the row was made.
    ...['events', 'events_pending', 'rejected_events', 'replay_messages', 'thinned_flag_calls'].map(table =>
      addColumn(database, table, 'erasures_before', added.erasures_before),
    ),
    // Whose rows are being removed. Mutations read it, so that no id stands in the text of one, which the engine keeps.
    createTable(
      database,
      'erased_subjects',
      `(
      project_id UInt32,
      erasures UInt32,
      kind LowCardinality(String),
      subject String
    ) ENGINE = MergeTree ORDER BY (project_id, erasures, kind, subject)`,
    ),
    // What is being added to rows of an import job (docs/decisions/0065): empty, unless a job is being published.
    createTable(
      database,
      'known_person_properties',
      `(
      import_job_id UInt32,
      attempt UInt64,
      distinct_id String,
      known String CODEC(ZSTD(1))
    ) ENGINE = MergeTree PARTITION BY (import_job_id, attempt) ORDER BY distinct_id`,
    ),
  ]
}
