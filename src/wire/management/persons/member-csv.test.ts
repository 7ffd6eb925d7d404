import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { runAllSteps } from '#core/maybe-steps.ts'
import { readMemberTable, tableRowsMax } from './member-csv.ts'

const read = (text: string) => runAllSteps(readMemberTable(text))

function problemOf(text: string): string {
  const result = read(text)
  assert.ok(!result.ok, JSON.stringify(result).slice(0, 200))
  return result.error
}

describe('a CSV table of persons', () => {
  const cases: [string, string, string, string[]][] = [
    ['nothing', '', 'any', []],
    ['ids without a head', 'a\nb\n', 'any', ['a', 'b']],
    ['any line ends and empty lines', 'a\r\n\r\nb\rc\n\n', 'any', ['a', 'b', 'c']],
    ['a byte order mark and spaces', '\ufeff distinct_id \n a b ', 'distinct_id', ['a b']],
    ['heads however they are spelt', 'Person-ID\n1\n2', 'person', ['1', '2']],
    ['a column among others', 'name,distinctId,plan\nAda,a,pro\nBob,b', 'distinct_id', ['a', 'b']],
    ['a row without the id', 'name,distinct_id\nAda,\nBob,b\nEve', 'distinct_id', ['', 'b', '']],
    ['quoted cells', '"a,b"\n"say ""hi"""\n"two\nlines"', 'any', ['a,b', 'say "hi"', 'two\nlines']],
    ['a quotation mark within an id', 'a"b', 'any', ['a"b']],
    ['a head of another name, as an id', 'user\na', 'any', ['user', 'a']],
    ['the name of a head in a later row, as an id', 'a\nperson_id', 'any', ['a', 'person_id']],
    ['semicolons', 'name;distinct_id\nAda, B.;a\n"x;y";"b;c"', 'distinct_id', ['a', 'b;c']],
    ['tabs', 'distinct_id\tname\na,b\tAda', 'distinct_id', ['a,b']],
    ['bars, and a quoted head', '\ufeff"Name"|"person_id"\nAda|1', 'person', ['1']],
    ['a separator that Excel names', '\ufeffsep=;\r\nName;Distinct ID\r\nB., Ada;a', 'distinct_id', ['a']],
    ['a separator that Excel names before ids without a head', 'sep=,\n"a"\nb', 'any', ['a', 'b']],
    ['an id that looks like a separator that Excel names', 'a\nsep=;\nsep=b', 'any', ['a', 'sep=;', 'sep=b']],
    ['semicolons without a head as part of ids', 'a;b\nc', 'any', ['a;b', 'c']],
    ['the heads of PostHog', 'Person.id,Name\nu1,Ada', 'person', ['u1']],
    ['the other heads of PostHog', 'Email,Person .id\nada@x.test,u1', 'person', ['u1']],
    ['an export of persons from here', 'cursor,uuid,name,distinct_ids\n9,u1,Ada,"[""a""]"', 'person', ['u1']],
    ['person_id before others', 'uuid,distinct_id,person_id\ne1,a,u1', 'person', ['u1']],
    ['distinct_id before the uuid of an event', 'uuid,event,distinct_id\ne1,x,a', 'distinct_id', ['a']],
    ['a comma at the end of the last row', 'distinct_id,name\na,', 'distinct_id', ['a']],
  ]
  for (const [what, text, kind, ids] of cases)
    it(`reads ${what}`, () => assert.deepEqual(read(text), { ok: true, value: { kind, ids } }))

  const refused: [string, string, RegExp][] = [
    ['several columns without a head', 'a\n\nb,c\n', /^Row 3 has 2 columns/],
    ['several columns without a head, behind a separator', 'sep=;\na;b', /^Row 2 has 2 columns/],
    ['a quotation mark that stands alone', 'a\n"b', /^Row 2 is malformed/],
    ['text behind a closing quotation mark', 'a\n"b"c', /^Row 2 is malformed/],
    ['an endless quoted cell', `a\n"${'""x'.repeat(600_000)}`, /^Row 2 has a cell of more than/],
    ['an endless plain cell', 'x'.repeat(20_000), /^Row 1 has a cell of more than/],
    ['too many columns', ','.repeat(5_000), /^Row 1 has more than 1000 columns/],
    ['too many ids', 'a\n'.repeat(tableRowsMax + 1), /^Row 100001 exceeds the limit/],
  ]
  for (const [what, text, message] of refused)
    it(`is refused with ${what}`, () => assert.match(problemOf(text), message))

  for (const [what, rows] of [
    ['many cells', Array.from({ length: 2_000 }, (_, index) => `id ${index},"x,${index}"`)],
    ['long cells', Array.from({ length: 200 }, (_, index) => `id ${index},"${'""'.repeat(4_000)}"`)],
  ] as const)
    it(`is read in steps if it has ${what}`, () => {
      const steps = [...readMemberTable(`distinct_id,name\n${rows.join('\n')}`)].length
      assert.ok(steps > 10, String(steps))
    })
})
