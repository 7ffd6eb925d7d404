// What every answer to a query says about the events that it was made of.

import Type from 'typebox'

export const completeSchema = Type.Boolean({
  description: 'False while accepted events are still being processed: results may be incomplete.',
})
