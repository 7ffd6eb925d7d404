import assert from 'node:assert/strict'
import { it } from 'node:test'
import Type, { type TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { type JsonValue, parseJson } from '#core/json.ts'
import { type CompileSchema, findFirstProblems, type SchemaProblem } from './schema-problems.ts'

const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()])
const question = Type.Object({ text: Type.String({ maxLength: 3 }), choices: Type.Optional(Type.Array(Type.String())) })
const schema = Type.Object({
  ids: Type.Optional(Type.Array(Type.Union([Type.Integer(), Type.String({ minLength: 1 })]), { maxItems: 3 })),
  questions: Type.Optional(nullable(Type.Array(question, { minItems: 1 }))),
  place: Type.Optional(nullable(Type.Object({ city: Type.String() }, { additionalProperties: false }))),
  counts: Type.Optional(Type.Record(Type.String(), Type.Integer())),
  name: Type.String(),
})

function problemsOf(value: JsonValue, compile: CompileSchema = part => Compile(part)): SchemaProblem[] {
  return findFirstProblems(schema, value, compile)
}

function reportOf({ keyword, instancePath, message }: SchemaProblem): string {
  return [keyword, instancePath, message].join(' ')
}

it('checking a request body reports the same first problem as a check that finds all problems', () => {
  for (const text of [
    '{}',
    '{"name":1}',
    '{"name":"","ids":1}',
    '{"name":"","ids":[1,"a",""]}',
    '{"name":"","ids":[1,2,3,4]}',
    '{"name":"","questions":[]}',
    '{"name":"","questions":7}',
    '{"name":"","questions":[{"text":"a"},{}]}',
    '{"name":"","questions":[{"text":"a"},{"text":"abcd"}]}',
    '{"name":"","questions":[{"text":"a","choices":["a",1]}]}',
    '{"name":"","place":{"city":1}}',
    '{"name":"","place":{"city":"","street":""}}',
    '{"name":"","counts":{"a":"b"}}',
    '{"name":"","ids":[""],"questions":[]}',
  ]) {
    const value = parseJson(text)
    const [first] = Compile(schema).Errors(value) as unknown as SchemaProblem[]
    assert.equal(reportOf(problemsOf(value)[0]!), reportOf(first!), text)
  }
})

it('a list is refused for its length before its items are checked, and only its first faulty item is reported', () => {
  const reported: unknown[] = []
  const compile: CompileSchema = part => {
    const validator = Compile(part)
    return {
      Check: (value: unknown) => validator.Check(value),
      Errors(value: unknown) {
        reported.push(value)
        return validator.Errors(value)
      },
    }
  }
  const tooMany = Array.from({ length: 10_000 }, () => '')
  const [length] = problemsOf({ name: '', ids: tooMany }, compile)
  assert.deepEqual([length!.keyword, length!.instancePath], ['maxItems', '/ids'])
  reported.length = 0
  const questions = tooMany.map((_, index) => ({ text: index < 5_000 ? 'a' : 'abcd' }))
  const [item] = problemsOf({ name: '', questions }, compile)
  assert.deepEqual([item!.keyword, item!.instancePath], ['maxLength', '/questions/5000/text'])
  assert.deepEqual(reported, ['abcd'])
})
