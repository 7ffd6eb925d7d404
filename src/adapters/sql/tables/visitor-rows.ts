// Declares the rows of cookieless visitors. The columns are in the order in which `processing/inserts.ts` names them.

import { integerField, textField } from '#core/resource.ts'

const visitorName = { projectId: integerField('project_id'), hash: textField('hash') }

export const visitorIdentify = {
  fields: {
    ...visitorName,
    offset: integerField('log_offset'),
    uuid: textField('uuid'),
    ordinal: integerField('ordinal'),
    day: textField('day'),
  },
}

export const visitorSession = {
  fields: {
    ...visitorName,
    identifies: integerField('identifies'),
    offset: integerField('log_offset'),
    sessionId: textField('session_id'),
    lastMs: integerField('last_at'),
    day: textField('day'),
  },
}
