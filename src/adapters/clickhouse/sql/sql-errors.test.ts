import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ClickHouseError } from '@clickhouse/client'
import { MirrorFillingError, PortError } from '#ports/port-error.ts'
import { fillingMessage } from '../connection/clickhouse-errors.ts'
import {
  buildRowPolicies,
  formatViewsDatabaseName,
  formatViewsUserName,
  listTablesReadByViews,
  sqlScopes,
} from '../connection/sql-users.ts'
import { buildUserStatements, createSqlViews } from './set-up.ts'
import { isFormatError, toSqlFailure } from './sql-errors.ts'

const failure = (code: string, message = 'refused') => toSqlFailure(new ClickHouseError({ code, message }), 'db')

describe('failures of SQL', () => {
  it('say what to change if the query caused them', () => {
    for (const [code, kind] of [
      ['497', 'forbidden'],
      ['158', 'too_large'], // TOO_MANY_ROWS
      ['191', 'too_large'], // SET_SIZE_LIMIT_EXCEEDED
      ['241', 'too_large'], // MEMORY_LIMIT_EXCEEDED
      ['307', 'too_large'], // TOO_MANY_BYTES
      ['396', 'too_large'], // TOO_MANY_ROWS_OR_BYTES
      ['62', 'failed'], // SYNTAX_ERROR
      ['395', 'failed'], // what a query throws by itself
    ] as const)
      assert.equal(failure(code).kind, kind, code)
  })

  it('count as failures of the store if they may be temporary', () => {
    for (const [code, portCode] of [
      ['159', 'timeout'],
      ['202', 'full'],
      ['246', 'corrupt'],
      ['192', 'unavailable'], // UNKNOWN_USER
      ['193', 'unavailable'], // WRONG_PASSWORD
      ['194', 'unavailable'], // REQUIRED_PASSWORD
      ['516', 'unavailable'], // AUTHENTICATION_FAILED
    ] as const)
      assert.throws(() => failure(code), { code: portCode }, code)
    assert.throws(() => failure('241', 'User memory limit exceeded: would use 9 GiB'), { code: 'full' })
    assert.throws(() => failure('395', `Value passed: ${fillingMessage}`), MirrorFillingError)
    assert.throws(() => toSqlFailure(new Error('socket hang up'), 'db'), PortError)
    assert.throws(() => toSqlFailure(new TypeError('ours'), 'db'), TypeError)
  })

  it('show one line of the engine’s message, without the tables that the views hide', () => {
    for (const [message, detail] of [
      ["Unknown identifier 'a'", "Unknown identifier 'a'"],
      ['Code: 62. DB::Exception: Syntax error: failed at position 1', 'Syntax error: failed at position 1'],
      ['No such column: In scope SELECT x FROM db.events', 'No such column'],
      ['Cannot parse text: while executing FUNCTION f', 'Cannot parse text'],
      ['Missing columns (version 26.7.2.1 (official build))', 'Missing columns'],
      ['Missing columns (version 26.7.2.1).', 'Missing columns'],
      ['No db.events, no db_sql.persons, but other_db.events', 'No events, no persons, but other_db.events'],
      ['__table1.uuid is not __table22.id', 'uuid is not id'],
      ['pennon_analyst or pennon_views may not', 'this user or this user may not'],
      ['first\nsecond', 'first'],
      ['  blanks  ', 'blanks'],
      ['x'.repeat(500), 'x'.repeat(500)],
      ['x'.repeat(501), `${'x'.repeat(500)}…`],
    ] as const)
      assert.deepEqual(failure('62', message), { kind: 'failed', detail }, message)
  })

  it('are reported as an incomplete query if they name the output format that the server appended', () => {
    const failed = (detail: string) => ({ kind: 'failed', detail }) as const
    for (const [answer, sql, expected] of [
      [failed("Unknown identifier 'FORMAT'"), 'SELECT a +', true],
      [failed("Unknown identifier 'FORMAT'"), 'SELECT FORMAT', false],
      [failed('near JSONEach'), 'SELECT 1', true],
      [failed('near a'), 'SELECT 1', false],
      [{ kind: 'forbidden' } as const, 'SELECT 1', false],
    ] as const)
      assert.equal(isFormatError(answer, 'JSONEach', sql), expected)
  })
})

describe('tables for users’ SQL', () => {
  it('are views that show only the rows of one project, or of one import job', () => {
    for (const scope of sqlScopes) {
      const views = createSqlViews('db', scope).map(({ statement }) => statement)
      const tables = new Set(views.flatMap(statement => statement.match(/(?<=\bdb\.)\w+/g) ?? []))
      assert.deepEqual([...tables].sort(), listTablesReadByViews(scope).toSorted())
      assert.equal(tables.has('events_pending'), scope === 'job')
      assert.ok(views.every(statement => statement.includes(`VIEW ${formatViewsDatabaseName('db', scope)}.`)))
      const statements = buildUserStatements('db', scope, { username: 'analyst', password: "se'cret" }, 9)
      for (const [table, policy] of Object.entries(buildRowPolicies(scope))) {
        assert.ok(policy.includes("project_id = toUInt32(getClientHTTPHeader('Pennon-Project'))"), table)
        assert.equal(policy.includes('Pennon-Import-Job'), table === 'events_pending', table)
        assert.ok(
          statements.some(sql => sql.includes(` ON db.${table} USING ${policy} TO ${formatViewsUserName(scope)}`)),
          table,
        )
      }
      const granted = statements.filter(sql => sql.startsWith('GRANT') && /TO analyst(_job)?$/.test(sql))
      assert.deepEqual(granted, [
        scope === 'visible' ? 'GRANT SELECT ON db_sql.* TO analyst' : 'GRANT SELECT ON db_sql_job.* TO analyst_job',
      ])
      // The server's query log must not reveal the password.
      assert.ok(!statements.some(sql => sql.includes("se'cret")))
    }
  })

  it('get a new version when the query of a view changes', () => {
    const [ours, others] = [createSqlViews('db'), createSqlViews('other')]
    assert.equal(new Set([...ours, ...others].map(({ comment }) => comment)).size, ours.length * 2)
    assert.deepEqual(createSqlViews('db'), ours)
    for (const { statement, comment } of ours) assert.ok(statement.endsWith(`COMMENT '${comment}'`))
  })
})
