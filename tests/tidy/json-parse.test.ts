import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { it } from 'node:test'

// `JSON.parse` may misread keys that are written with an escape (docs/decisions/0069-escaped-keys.md), so objects from
// outside are read by `parseJson` and `parseJsonWithDoubles`. These files may call it, for one of three reasons.
const isThat = ['src/core/json.ts']
const hasNoObjects = [
  'src/adapters/clickhouse/insights/trend-lines.ts',
  'src/adapters/clickhouse/sql/sql-queries.ts',
  'src/commands/events/export-events.ts',
  'src/core/json-text.ts',
  'src/core/csv.ts',
  'src/wire/capture/request-outline.ts',
]
/** Of what is parsed no key is read, or only whether the text is JSON. */
const readsNoKeys = ['src/core/capture/cookieless-event.ts', 'src/importer/fetch/apis/check-downloads.ts']
/** Pennon wrote it, or the event store or npm did, under names that need no escape. */
const hasOurNames = [
  'src/adapters/built-screens/built-screens.ts',
  'src/adapters/clickhouse-embedded/engine-endpoint.ts',
  'src/adapters/clickhouse/connection/checked-answers.ts',
  'src/adapters/clickhouse/exports/buffered-rows.ts',
  'src/adapters/posthog-js/installed-scripts.ts',
  'src/adapters/sql/persons/erasure-queries.ts',
  'src/adapters/sql/processing/worker-state-queries.ts',
  'src/adapters/sql/processing/subject-mirror-queries.ts',
  'src/adapters/sql/tables/rows.ts',
  'src/adapters/sqlite-log/lost-records.ts',
  'src/commands/events/partial-file.ts',
  'src/commands/work.ts',
  'src/compose/backup/backup-description.ts',
  'src/core/events/reject-source.ts',
  'src/distribution.ts',
  'src/core/processing/mirror-subjects.ts',
  'src/http/management/queries/agent-tools.ts',
  'src/http/management/queries/query.ts',
  'src/importer/fetch/fetch-config.ts',
  'src/importer/fetch/fetch-state.ts',
  'src/importer/stages/staged-line.ts',
  'src/processes/data-lock.ts',
  'src/telemetry/log.ts',
]

it('objects from outside are parsed by parseJson or parseJsonWithDoubles, not by JSON.parse', () => {
  const files = globSync('src/**/*.ts', { exclude: ['**/*.test.ts'] })
  const callers = files.filter(file => /JSON\.parse\b(?!`)/.test(withoutComments(readFileSync(file, 'utf8'))))
  assert.deepEqual(callers.toSorted(), [...isThat, ...hasNoObjects, ...readsNoKeys, ...hasOurNames].toSorted())
})

function withoutComments(source: string): string {
  return source.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
}
