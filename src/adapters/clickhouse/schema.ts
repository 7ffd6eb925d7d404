// The tables of the event store. Every statement can run again, from several processes at once: an upgrade is a further
// statement that does nothing when it was done (`IF NOT EXISTS`).
// Source: docs/wire/ingestion.md 8.1, 10.

import { replayRetentionDays } from '#ports/event-store.ts'

export interface SchemaOptions {
  readonly rejectRetentionDays: number
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
  created_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  lane LowCardinality(String),
  historical_migration Bool,
  import_job_id UInt32,
  import_partition UInt32,
  row_version UInt64 CODEC(Delta, ZSTD(1)),
  properties String CODEC(ZSTD(1)),
  flags Map(LowCardinality(String), String),
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
  inserted_at DateTime64(3, 'UTC') ALIAS created_at,
  ${[0, 1, 2, 3, 4].map(emptyGroupColumns).join(',\n  ')}`

/** Columns that users of PostHog's tables know; empty, and nothing is stored for them. */
function emptyGroupColumns(index: number): string {
  return `group${index}_properties String ALIAS '', group${index}_created_at DateTime64(3, 'UTC') ALIAS toDateTime64(0, 3, 'UTC')`
}

const eventEngine = `ENGINE = ReplacingMergeTree(row_version)
  PARTITION BY (import_partition, toYYYYMM(captured_at))
  ORDER BY (project_id, toDate32(timestamp), event, distinct_id, uuid)`

/** Statements in the order in which they have to run. New ones go to the end; released ones are never changed. */
export function schemaStatements(database: string, { rejectRetentionDays }: SchemaOptions): string[] {
  const events = (name: string) => `CREATE TABLE IF NOT EXISTS ${database}.${name} (${eventColumns}) ${eventEngine}`
  return [
    events('events'),
    events('events_pending'),
    `CREATE TABLE IF NOT EXISTS ${database}.person_distinct_id_overrides (
      project_id UInt32,
      distinct_id String,
      person_id UUID,
      version UInt64
    ) ENGINE = ReplacingMergeTree(version) ORDER BY (project_id, distinct_id)`,
    `CREATE TABLE IF NOT EXISTS ${database}.rejected_events (
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
      body String CODEC(ZSTD(1))
    ) ENGINE = ReplacingMergeTree
      PARTITION BY toYYYYMM(received_at)
      ORDER BY (project_id, received_at, reject_id)
      TTL toDateTime(received_at) + toIntervalDay(${rejectRetentionDays}) DELETE`,
    // Says nothing new after the first start, unless the setting has changed.
    `ALTER TABLE ${database}.rejected_events MODIFY TTL toDateTime(received_at) + toIntervalDay(${rejectRetentionDays}) DELETE`,
    // Both alike, or partitions could not move from one to the other. Rows from before are charged as they were.
    ...['events', 'events_pending'].map(
      table =>
        `ALTER TABLE ${database}.${table} ADD COLUMN IF NOT EXISTS
          charged_at DateTime64(3, 'UTC') DEFAULT captured_at CODEC(Delta, ZSTD(1)) AFTER captured_at`,
    ),
    // Partitions are days of storing, so that what expires together lies together and is dropped without being read. Items
    // come packed; granules are small, because one row may hold megabytes of them.
    `CREATE TABLE IF NOT EXISTS ${database}.replay_messages (
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
      items String CODEC(NONE) TTL stored_at + toIntervalDay(${replayRetentionDays.items})
    ) ENGINE = ReplacingMergeTree(row_version)
      PARTITION BY toYYYYMMDD(stored_at)
      ORDER BY (project_id, session_id, uuid)
      TTL stored_at + toIntervalDay(${replayRetentionDays.row}) DELETE
      SETTINGS merge_with_ttl_timeout = 3600, index_granularity = 1024, index_granularity_bytes = 4194304,
        merge_max_block_size = 1024, merge_max_block_size_bytes = 4194304`,
    // How a reject can be taken through capture once more. Rows from before do not say.
    `ALTER TABLE ${database}.rejected_events ADD COLUMN IF NOT EXISTS source String CODEC(ZSTD(1)) AFTER body`,
    // Beside the rejects, which a repeated chunk writes again.
    `CREATE TABLE IF NOT EXISTS ${database}.replayed_rejects (
      project_id UInt32,
      reject_id String,
      received_at DateTime64(3, 'UTC'),
      replayed_at DateTime64(3, 'UTC')
    ) ENGINE = ReplacingMergeTree
      ORDER BY (project_id, reject_id)
      TTL toDateTime(received_at) + toIntervalDay(${rejectRetentionDays}) DELETE`,
    `ALTER TABLE ${database}.replayed_rejects MODIFY TTL toDateTime(received_at) + toIntervalDay(${rejectRetentionDays}) DELETE`,
    // What is left of flag calls that a project thins: they are used, though not stored. Identities as of events.
    `CREATE TABLE IF NOT EXISTS ${database}.thinned_flag_calls (
      project_id UInt32,
      uuid UUID,
      distinct_id String CODEC(ZSTD(1)),
      timestamp DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      charged_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
      feature_flag LowCardinality(String),
      feature_flag_response String CODEC(ZSTD(1)),
      row_version UInt64 CODEC(Delta, ZSTD(1))
    ) ENGINE = ReplacingMergeTree(row_version)
      PARTITION BY toYYYYMM(charged_at)
      ORDER BY (project_id, toDate32(timestamp), distinct_id, uuid)`,
    // By these a worker knows the store that it left, and the one that a state of last week left: each instance has a ring of
    // slots, in which its newest row is never replaced before there is a newer one.
    `CREATE TABLE IF NOT EXISTS ${database}.worker_marks (
      instance String,
      slot UInt32,
      id String,
      former String,
      written_at DateTime64(6, 'UTC')
    ) ENGINE = ReplacingMergeTree(written_at) ORDER BY (instance, slot)`,
  ]
}
