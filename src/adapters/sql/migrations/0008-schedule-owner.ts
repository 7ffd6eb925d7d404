// The worker that runs a schedule for all workers, and until when the others leave it to that one. Without a row, no
// worker owns the schedule.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const scheduleOwner: Migration = {
  version: 8,
  name: 'schedule owner',
  statements: ({ text }) => [
    `CREATE TABLE schedule_owner (
      name ${text} PRIMARY KEY,
      owner ${text} NOT NULL,
      until BIGINT NOT NULL
    )`,
  ],
}
