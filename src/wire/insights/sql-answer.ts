// The answer to a HogQLQuery, in PostHog's shape.

import Type from 'typebox'
import { completeSchema } from './complete.ts'

export const sqlAnswerSchema = Type.Object(
  {
    columns: Type.Array(Type.String()),
    // A tuple's `items` is a list, which OpenAPI does not have.
    types: Type.Array(Type.Array(Type.String(), { minItems: 2, maxItems: 2 }), {
      description: 'Each column with its type.',
    }),
    results: Type.Array(Type.Array(Type.Unknown()), { description: 'A list of values for each row.' }),
    hasMore: Type.Boolean({ description: 'Whether rows beyond `limit` were left out.' }),
    limit: Type.Integer(),
    offset: Type.Literal(0),
    error: Type.Null(),
    complete: completeSchema,
  },
  { title: 'HogQLQuery' },
)
