// The state of ingestion other than events: settings of a project, quotas of every resource, and counts of refused
// events.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const ingestion: Migration = {
  version: 4,
  name: 'ingestion',
  statements: ({ text }) => [
    `ALTER TABLE project ADD COLUMN ingestion_settings ${text} NOT NULL DEFAULT '{}'`,

    // The first three count live events that `events_charged` includes; it does not include recordings.
    ...['exceptions', 'llm_events', 'survey_responses', 'recordings'].map(
      resource => `ALTER TABLE usage_daily ADD COLUMN ${resource} BIGINT NOT NULL DEFAULT 0`,
    ),

    // Events of known projects that a front answered and did not accept, by UTC day and reason.
    `CREATE TABLE refused_daily (
      project_id BIGINT NOT NULL,
      day ${text} NOT NULL,
      reason ${text} NOT NULL,
      refused_count BIGINT NOT NULL,
      last_seen BIGINT NOT NULL,
      PRIMARY KEY (project_id, day, reason)
    )`,
  ],
}
