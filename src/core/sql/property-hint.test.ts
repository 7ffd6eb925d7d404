import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isLinear } from '../../../tests/support/cpu-time.ts'
import { findPropertyHint } from './property-hint.ts'

const unknown = (name: string) => `Unknown expression identifier \`${name}\``
const hint = (detail: string, sql = '', at: number | null = null) => findPropertyHint({ detail, at }, sql)

describe('the hint for a property that is written as in HogQL', () => {
  it('names the function that reads the property', () => {
    const cases: [detail: string, expected: string][] = [
      [
        unknown('properties.price'),
        "JSONExtractString(properties, 'price'), or for numbers JSONExtractFloat(properties, 'price')",
      ],
      [
        "Identifier 'e.properties.$browser' cannot be resolved from table with name e.",
        "JSONExtractString(e.properties, '$browser')",
      ],
      [unknown('properties.a.b'), "JSONExtractString(properties, 'a', 'b')"],
      [unknown('person.properties.email'), "JSONExtractString(person_properties, 'email')"],
      ["Identifier 'e.person.properties.x' cannot be resolved", "JSONExtractString(e.person_properties, 'x')"],
      [unknown('person_properties.x'), "JSONExtractString(person_properties, 'x')"],
    ]
    for (const [detail, expected] of cases) assert.ok(hint(detail)?.includes(expected), `${detail}: ${hint(detail)}`)
    assert.match(hint(unknown('person.properties.email'))!, /join persons by person_id/)
  })

  it('is given if the check fails at the property’s name, also in brackets', () => {
    const sql = 'SELECT count(), properties.$browser FROM events'
    assert.match(hint('A name with $', sql, sql.indexOf('$'))!, /JSONExtractString\(properties, '\$browser'\)/)
    const brackets = "SELECT properties[ 'price' ] FROM events"
    const detail = "First argument for function 'arrayElement' must be array, got 'String' instead"
    assert.match(hint(detail, brackets)!, /JSONExtractString\(properties, 'price'\)/)
  })

  it('is not given for other errors', () => {
    assert.equal(hint(unknown('evnt'), 'SELECT evnt, properties.price FROM events'), null)
    assert.equal(hint('sleep is not allowed.', "SELECT JSONExtractString(properties, 'a'), sleep(1)", 41), null)
    assert.equal(hint(unknown('my_properties.price')), null)
  })

  it('takes time proportional to the length of the SQL, whatever names it has', () => {
    for (const name of ['a.', 'a']) {
      const sqlOf = (times: number) => `SELECT ${name.repeat(800 * times)} `
      assert.ok(isLinear(times => () => hint('x', sqlOf(times), sqlOf(times).length)))
      assert.ok(isLinear(times => () => hint("'arrayElement'", sqlOf(times))))
    }
  })
})
