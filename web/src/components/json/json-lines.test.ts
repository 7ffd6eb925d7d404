import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonValue, parseJson } from '#core/json.ts'
import { findOpenAtFirst, findParentLine, listJsonLines } from './json-lines.ts'

function draw(value: JsonValue, isOpen: Parameters<typeof listJsonLines>[1] = () => true): string[] {
  return listJsonLines(value, isOpen).map(
    line => `${'  '.repeat(line.level - 1)}${line.key ?? '·'} ${line.kind} ${line.text}`,
  )
}

describe('the lines of a JSON value', () => {
  it('show every member in order, with number literals as they were written', () => {
    const value = parseJson('{"a":[1.0,12345678901234567890,-0],"__proto__":{"b":null},"c":"1","d":true,"e":{},"f":[]}')
    assert.deepEqual(draw(value), [
      '· object 6',
      '  a list 3',
      '    0 number 1.0',
      '    1 number 12345678901234567890',
      '    2 number -0',
      '  __proto__ object 1',
      '    b null null',
      '  c string 1',
      '  d boolean true',
      '  e object 0',
      '  f list 0',
    ])
  })

  it('leave out what is inside closed objects and lists', () => {
    const value = parseJson('{"a":{"b":1},"c":[2]}') as { a: JsonValue }
    assert.deepEqual(
      draw(value, container => container !== value.a),
      ['· object 2', '  a object 1', '  c list 1', '    0 number 2'],
    )
  })

  it('know their places among their siblings and their parents', () => {
    const lines = listJsonLines(parseJson('{"a":[true,false],"b":1}'), () => true)
    assert.deepEqual(
      lines.map(({ place, siblingCount }) => `${place}/${siblingCount}`),
      ['1/1', '1/2', '1/2', '2/2', '2/2'],
    )
    assert.deepEqual(
      lines.map((_, at) => findParentLine(lines, at)),
      [-1, 0, 1, 1, 0],
    )
  })

  it('are listed at any depth', () => {
    const depth = 50_000
    let value: JsonValue = 1
    for (let level = 0; level < depth; level++) value = [value]
    assert.equal(listJsonLines(value, () => true).at(-1)!.level, depth + 1)
    assert.equal(findOpenAtFirst(value, 1_000_000).size, depth)
  })

  it('are open at first level by level, as far as there is place', () => {
    const value = parseJson('{"few":{"x":{"y":1}},"many":[1,2,3,4,5,6,7,8,9,10]}')
    const open = findOpenAtFirst(value, 6)
    assert.deepEqual(
      draw(value, container => open.has(container)),
      ['· object 2', '  few object 1', '    x object 1', '      y number 1', '  many list 10'],
    )
    assert.equal(findOpenAtFirst('text', 6).size, 0)
  })
})
