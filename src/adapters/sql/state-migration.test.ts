import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '#telemetry/log.ts'
import { logStateMigration } from './state-migration.ts'

test('a migration of the state is logged with the way back; a new state and one that was up to date are not', () => {
  const lines: string[] = []
  const logger = createLogger({ level: 'info', process: 'serve' }, { write: line => void lines.push(line) })
  const copy = 'state.db.before-0021'
  for (const [from, to] of [
    [0, 22],
    [22, 22],
    [20, 22],
  ] as const)
    logStateMigration({ from, to, durationMs: 7, copy }, logger)
  assert.equal(lines.length, 1)
  const { level, msg, ...line } = JSON.parse(lines[0]!)
  assert.deepEqual([level, line.from, line.to, line.durationMs, line.copy], ['info', 20, 22, 7, copy])
  assert.match(msg, /^the state was migrated .* earlier Pennon starts only with state\.db\.before-0021$/)
})
