// The events that SDKs send of surveys. Source: docs/wire/clients.md 13.

export const surveyEvents = { shown: 'survey shown', dismissed: 'survey dismissed', sent: 'survey sent' } as const
