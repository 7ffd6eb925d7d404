// Adds users, their sessions, the links that sign somebody in once, and the counts of attempts to sign in.

import type { Migration } from './migration.ts'

export const users: Migration = {
  version: 24,
  name: 'users',
  statements: ({ text, clustered }) => [
    `CREATE TABLE "user" (
      id ${text} PRIMARY KEY,
      email ${text} UNIQUE,
      name ${text} NOT NULL,
      role ${text} NOT NULL,
      sees_persons INTEGER NOT NULL,
      disabled INTEGER NOT NULL,
      created_at BIGINT NOT NULL,
      last_seen_at BIGINT,
      access_version BIGINT NOT NULL,
      password_hash ${text}
    )`,
    `CREATE TABLE user_session (
      id ${text} PRIMARY KEY,
      secret_hash ${text} NOT NULL UNIQUE,
      user_id ${text} NOT NULL,
      user_agent ${text} NOT NULL,
      address ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      last_seen_at BIGINT NOT NULL
    )`,
    `CREATE INDEX user_session_user ON user_session (user_id, created_at)`,
    `CREATE TABLE sign_in_link (
      id ${text} PRIMARY KEY,
      token_hash ${text} NOT NULL UNIQUE,
      purpose ${text} NOT NULL,
      user_id ${text},
      role ${text} NOT NULL,
      sees_persons INTEGER NOT NULL,
      email ${text},
      name ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      used_at BIGINT
    )`,
    // name: `account:` and the SHA-256 of the address that was typed, or `address:` and a network address.
    `CREATE TABLE sign_in_attempt (
      name ${text} PRIMARY KEY,
      attempts BIGINT NOT NULL,
      counted_at BIGINT NOT NULL
    )${clustered}`,
  ],
}
