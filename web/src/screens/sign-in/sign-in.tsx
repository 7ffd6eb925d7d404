import { useMutation } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { beginSession } from '../../api/session.ts'
import { Button } from '../../components/controls/button.tsx'
import { splitError } from '../../components/fields/split-error.ts'
import { TextField } from '../../components/fields/text-field.tsx'
import { Refusal } from '../../components/states/states.tsx'
import { LinkHint } from '../../shell/link-hint.tsx'
import { EntryForm } from './entry-form.tsx'

export function SignIn() {
  const { next = '/' } = useSearch({ from: '/sign-in' })
  const { history } = useRouter()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => beginSession(() => call('POST /api/session/', { body: { email, password } })),
    onSuccess: () => history.replace(`/ui${next}`),
  })
  const { errors, rest } = splitError(signIn.error, ['email', 'password'])
  const state = {
    isBusy: signIn.isPending,
    disabledReason: email === '' || password === '' ? 'Type e-mail and password first' : null,
  }
  return (
    <EntryForm title="Sign in" onSubmit={() => signIn.mutate()} {...state}>
      <TextField
        label="E-mail"
        type="email"
        name="email"
        autoComplete="username"
        value={email}
        onChange={setEmail}
        error={errors.email}
        autoFocus
      />
      <TextField
        label="Password"
        type="password"
        name="password"
        autoComplete="current-password"
        value={password}
        onChange={setPassword}
        error={errors.password}
      />
      <Refusal error={rest} />
      <Button type="submit" kind="filled" {...state}>
        Sign in
      </Button>
      <LinkHint />
    </EntryForm>
  )
}
