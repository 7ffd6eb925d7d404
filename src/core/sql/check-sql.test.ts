import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isLinear } from '../../../tests/support/cpu-time.ts'
import { parseJson } from '../json.ts'
import { checkSql, findTableRead, type SqlFunctions } from './check-sql.ts'
import { bindValues } from './sql-values.ts'

const functions: SqlFunctions = {
  names: new Set(['toString', 'file', 'JSONExtractString', 'arrayMap', 'format']),
  anyCase: new Set(['count', 'sum', 'now', 'lower']),
  aggregates: new Set(['uniq', 'count', 'groupArray', 'quantile']),
  combinators: ['If', 'Array', 'OrNull', 'Merge'],
}

function check(sql: string, kind: 'query' | 'read' = 'query') {
  const checked = checkSql(sql, functions, kind)
  return checked.ok ? checked.value.sql : `${checked.error.at}: ${checked.error.detail}`
}

describe('SQL written by users', () => {
  it('may call the engine’s ordinary functions', () => {
    for (const sql of [
      'select count() from events',
      'WITH x AS (SELECT 1) SELECT * FROM x',
      '(SELECT 1) UNION ALL (SELECT 2)',
      "SELECT uniqIf(person_id, event = 'file(1)'), countArrayIf([1], 1), COUNT(*) FROM events -- file(",
      "SELECT `$browser`, lower(toString(1)) /* url('x') */ FROM events WHERE x IN (1) AND (y OR NOT (z))",
      "SELECT 'it''s' AS a, 'a\\'b' AS b, JSONExtractString(properties, '$browser') FROM events LIMIT 10",
      'SELECT * FROM numbers(3)',
      "SELECT EXTRACT(YEAR FROM x), TRIM(BOTH 'a' FROM y), date_sub(DAY, 1, x) FROM t",
      'SELECT quantile(0.5)(x), sum(y) OVER (PARTITION BY z) FROM t',
      'SELECT x::Array(Nullable(UInt8)) FROM t',
    ])
      assert.equal(check(sql), sql)
    assert.equal(check('SELECT 1 ; ; -- x'), 'SELECT 1 ')
  })

  it('may not call functions that reach outside the query, however their names are written or passed on', () => {
    for (const sql of [
      "SELECT file('/etc/passwd')",
      "SELECT FILE('/etc/passwd')",
      "SELECT `file`('/etc/passwd')",
      'SELECT "file"(\'/etc/passwd\')',
      "SELECT file /* */ ('/etc/passwd')",
      "SELECT arrayMap(file, ['/etc/passwd'])",
      "SELECT * APPLY file FROM (SELECT '/etc/passwd')",
      "SELECT * APPLY(`file`) FROM (SELECT '/etc/passwd')",
      "SELECT x'' || file('/etc/passwd')",
      "SELECT x'\\', file('/etc/passwd') --'",
      "SELECT `fi\\x6ce`('/etc/passwd')",
      "SELECT $$ ' $$, file('/etc/passwd') --'",
      "SELECT 1 /* /* */ , file('/etc/passwd') -- */",
      "SELECT ‘' , file('/etc/passwd') --’",
      "SELECT 1 # '\n, file('/etc/passwd')",
      "SELECT 1 // '\n, file('/etc/passwd')",
      'SELECT "a\\"", file(\'/etc/passwd\') --"',
      "SELECT * FROM eval('SELECT 1')",
      "SELECT * FROM `eval`('SELECT 1')",
      "SELECT * FROM url('http://x', CSV)",
      "SELECT * FROM `values`('a String DEFAULT file(1)')",
      "SELECT getSetting('x')",
      'SELECT hostName()',
      "SELECT dictGet('x', 'y', 1)",
      'SELECT sleep(3)',
      'SELECT * FROM (SELECT 1 SETTINGS max_execution_time = 0)',
      'SELECT * FROM (SELECT 1.SETTINGS max_execution_time = 0)',
      "SELECT * FROM values('a String', 'x')",
      "SELECT * FROM values(('a String DEFAULT file(1)'), ('x'))",
      "SELECT * FROM values((('a String DEFAULT file(1)', 1).1), ('x'))",
      "SELECT * FROM values(('a String DEFAULT file(1)', 1).1, ('x'))",
      "SELECT * FROM values(('a', 1)[1], ('x'))",
      "SELECT * FROM values((['a String DEFAULT file(1)', ''][1]), (1))",
      "SELECT * FROM values((SELECT 'a String DEFAULT file(1)' LIMIT 0, 1), (1))",
      "SELECT * FROM values(concat('a', 'b'), (1, 2))",
      'SELECT * FROM zeros(3)',
    ])
      assert.match(check(sql), /^(?:\d+|null): /, sql)
  })

  it('must be exactly one query', () => {
    for (const sql of [
      '',
      ' -- x',
      'DROP TABLE x',
      'SELECT 1; SELECT 2',
      'EXPLAIN SELECT 1',
      'SET x = 1',
      '`SELECT` 1',
    ])
      assert.match(check(sql), /^(?:\d+|null): /, sql)
    for (const sql of [
      'SHOW TABLES',
      'DESCRIBE events',
      'DESCRIBE (SELECT count() FROM events)',
      'desc (SELECT 1)',
      'SHOW SETTINGS',
      "show settings ILIKE 'max%'",
    ])
      assert.ok(check(sql, 'read') === sql && check(sql) !== sql, sql)
    for (const sql of [
      "DESCRIBE (SELECT file('/etc/passwd'))",
      "DESCRIBE file('/etc/passwd')",
      'SELECT describe(1)',
      'SHOW SETTINGS readonly = 0',
      "SHOW SETTINGS LIKE 'a' SETTINGS readonly = 0",
      'SHOW TABLES SETTINGS readonly = 0',
    ])
      assert.match(check(sql, 'read'), /^\d+: /, sql)
    assert.match(check(`SELECT ${'1,'.repeat(150_000)}1`), /at most 200000 are allowed/)
  })

  it('has a limit only if its outermost query has one', () => {
    const hasLimit = (sql: string) => {
      const checked = checkSql(sql, functions, 'query')
      return checked.ok && checked.value.hasLimit
    }
    assert.equal(hasLimit('SELECT 1 LIMIT 5'), true)
    assert.equal(hasLimit('SELECT 1 limit {n}'), true)
    assert.equal(hasLimit('SELECT * FROM (SELECT 1 LIMIT 5)'), false)
    assert.equal(hasLimit("SELECT 'LIMIT 5' -- LIMIT 5"), false)
    assert.equal(hasLimit('SELECT x FROM t LIMIT 1 BY x'), false)
    assert.equal(hasLimit('SELECT x FROM t LIMIT 1 BY x LIMIT 3'), true)
  })

  it('is read in time proportional to its length, however many lists of values it has', () => {
    assert.ok(isLinear(times => () => check(`SELECT ${'values((1,2)),'.repeat(215 * times)}1`)))
    assert.match(check(`SELECT ${'values((1,2)),'.repeat(13_760)}1`), /^SELECT values/)
  })
})

describe('the placeholders in a query', () => {
  const bind = (sql: string, values: string) => {
    const checked = checkSql(sql, functions, 'query')
    assert.ok(checked.ok)
    const bound = bindValues(checked.value, parseJson(values) as never)
    return bound.ok ? bound.value : bound.error.detail
  }

  it('get the type of their value', () => {
    assert.deepEqual(
      bind(
        'SELECT {t}, { n }, {b}, {f}, {big}, {l}, {none}',
        '{"t":"a","n":1,"b":true,"f":0.5,"big":18446744073709551615,"l":["x"],"none":null}',
      ),
      {
        sql: 'SELECT {t:String}, { n:Int64 }, {b:Bool}, {f:Float64}, {big:UInt64}, {l:Array(String)}, NULL',
        params: { t: 'a', n: 1, b: true, f: 0.5, big: 18446744073709551615n, l: ['x'] },
      },
    )
    assert.deepEqual(bind("SELECT {d:Date}, {'a': 1}, '{x}'", '{"d":"2026-01-01"}'), {
      sql: "SELECT {d:Date}, {'a': 1}, '{x}'",
      params: { d: '2026-01-01' },
    })
  })

  it('are refused if they have no value, if they replace a name, or if their values are of several types', () => {
    assert.match(String(bind('SELECT {x}', '{}')), /Missing value for \{x\}/)
    assert.match(String(bind('SELECT {toString}', '{}')), /Missing value/)
    assert.match(String(bind('SELECT * FROM {t:Identifier}', '{"t":"events"}')), /cannot replace a name/)
    assert.match(String(bind('SELECT {variables.x}', '{}')), /a placeholder is/)
    assert.match(String(bind('SELECT {x}', '{"x":[1,"a"]}')), /one of these types/)
    assert.match(String(bind('SELECT {x}', '{"x":{"a":1}}')), /one of these types/)
  })

  it('are refused if they are not closed, without reading all the text that follows', () => {
    assert.match(String(bind('SELECT {x:String', '{"x":1}')), /a placeholder is/)
    assert.match(String(bind('SELECT {x:{x:String}}', '{"x":1}')), /a placeholder is/)
    const open = checkSql(`SELECT ${'{x:'.repeat(60_000)}`, functions, 'read')
    assert.ok(open.ok && !bindValues(open.value, null).ok)
  })

  it('split a long value only once, however many times it is used', () => {
    const checked = checkSql(`SELECT ${'{x}, {x:String}, '.repeat(1_000)}1`, functions, 'query')
    assert.ok(checked.ok)
    let splits = 0
    const bound = bindValues(checked.value, { x: 'abcd' }, items => {
      splits++
      const all = [...items]
      return [all.slice(0, 2), all.slice(2)]
    })
    assert.ok(bound.ok)
    assert.equal(splits, 1)
    assert.deepEqual(bound.value.params, { x_0: 'ab', x_1: 'cd' })
    assert.match(bound.value.sql, /^SELECT (?:concat\(\{x_0:String\}, \{x_1:String\}\), ){2000}1$/)
  })
})

describe('a query of a caller who may not read persons', () => {
  const findRead = (sql: string) => {
    const checked = checkSql(sql, functions, 'read')
    assert.ok(checked.ok, sql)
    return findTableRead(checked.value, ['persons', 'groups'])
  }

  it('is recognised wherever it names the table', () => {
    for (const sql of [
      'SELECT * FROM persons',
      'SELECT * from `persons` p',
      'SELECT * FROM events, "persons"',
      'SELECT 1 FROM events e LEFT JOIN persons ON 1',
      'SELECT 1 WHERE 1 IN persons',
      'SELECT 1 WHERE (1, 2) NOT IN (persons)',
      'WITH p AS (SELECT id FROM pennon_sql . persons) SELECT * FROM p',
      'SELECT (SELECT count() FROM /* x */ persons) AS persons',
      'DESCRIBE persons',
    ])
      assert.equal(findRead(sql), 'persons', sql)
    assert.equal(findRead('SELECT * FROM groups'), 'groups')
  })

  it('may have a column of that name', () => {
    for (const sql of [
      'SELECT count() AS persons FROM events HAVING persons > 1 ORDER BY persons',
      "SELECT count() persons FROM events WHERE event = 'persons'",
      'SELECT person_id FROM events',
    ])
      assert.equal(findRead(sql), null, sql)
  })
})
