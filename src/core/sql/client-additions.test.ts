import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stripClientAdditions } from './client-additions.ts'

const cases: [what: string, sql: string, plain: string][] = [
  ['a schema before a view', 'SELECT e FROM pennon.events', 'SELECT e FROM events'],
  ['a quoted schema', 'SELECT `e` FROM "default"."events"', 'SELECT `e` FROM "events"'],
  [
    'a schema before a column',
    'SELECT `pennon`.`events`.`event` FROM `pennon`.`events`',
    'SELECT `events`.`event` FROM `events`',
  ],
  ['a schema before another name', 'SELECT 1 FROM default.other', 'SELECT 1 FROM default.other'],
  ['a column of that name', 'SELECT a.default.events', 'SELECT a.default.events'],
  ['the schema in SHOW TABLES', 'SHOW TABLES FROM pennon', 'SHOW TABLES '],
  ['a quoted schema in SHOW TABLES', "SHOW FULL TABLES IN `default` LIKE 'e%'", "SHOW FULL TABLES  LIKE 'e%'"],
  ['another schema in SHOW TABLES', 'SHOW TABLES FROM system', 'SHOW TABLES FROM system'],
  ['the schema in SHOW COLUMNS', 'SHOW COLUMNS FROM pennon.events', 'SHOW COLUMNS FROM events'],
  ['a text', "SELECT 'pennon.events SETTINGS a = 1'", "SELECT 'pennon.events SETTINGS a = 1'"],
  ['a setting', 'SELECT 1 SETTINGS max_threads = 1', 'SELECT 1 '],
  ['settings before a format', "SELECT 1 settings a = -1.5e3, b = 'x' FORMAT CSV", 'SELECT 1  FORMAT CSV'],
  ['settings of a subquery', 'SELECT * FROM (SELECT 1 SETTINGS a = 1)', 'SELECT * FROM (SELECT 1 )'],
  ['settings that are not a list', 'SELECT 1 SETTINGS a = {b:1}', 'SELECT 1 SETTINGS a = {b:1}'],
  ['a column called settings', 'SELECT settings, 1 FROM events', 'SELECT settings, 1 FROM events'],
  ['the table of settings', 'SELECT * FROM system.settings', 'SELECT * FROM system.settings'],
  ['an unterminated string', "SELECT 'a SETTINGS b = 1", "SELECT 'a SETTINGS b = 1"],
]

describe('SQL as ClickHouse clients write it', () => {
  for (const [what, sql, plain] of cases)
    it(`${plain === sql ? 'keeps' : 'loses'} ${what}`, () => assert.equal(stripClientAdditions(sql), plain))

  it('gets a sentence in response to EXPLAIN', () => {
    for (const sql of ['EXPLAIN SELECT 1', 'explain PIPELINE SELECT count() FROM events'])
      assert.match(stripClientAdditions(sql), /^SELECT 'Plans are not shown here/)
  })
})
