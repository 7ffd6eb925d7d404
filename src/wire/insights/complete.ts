// Whether the events behind an answer are complete; part of every answer to a query.

import Type from 'typebox'

export const completeSchema = Type.Boolean({
  description: 'False while accepted events are still being processed: results may be incomplete.',
})
