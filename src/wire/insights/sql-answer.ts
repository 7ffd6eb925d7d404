// The answer to a HogQLQuery, in PostHog's shape.

import Type from 'typebox'

/** Whether the events behind an answer are complete; part of every answer to a query. */
export const completeSchema = Type.Boolean({
  description: 'False while accepted events are still being processed: results may be incomplete.',
})

export const sqlAnswerSchema = Type.Object(
  {
    columns: Type.Array(Type.String()),
    // Not a tuple, because the `items` of a tuple's schema would be a list, which OpenAPI does not allow.
    types: Type.Array(Type.Array(Type.String(), { minItems: 2, maxItems: 2 }), {
      description: 'Columns with their types.',
    }),
    results: Type.Array(Type.Array(Type.Unknown()), { description: 'Rows, each a list of values.' }),
    hasMore: Type.Boolean({ description: 'Whether there are rows beyond `limit`.' }),
    limit: Type.Integer(),
    offset: Type.Literal(0),
    error: Type.Null(),
    complete: completeSchema,
  },
  { title: 'HogQLQuery' },
)
