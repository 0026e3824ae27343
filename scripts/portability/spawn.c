// For programs under qemu-user: what they start runs under it too. The kernel cannot run their programs by itself, unless
// qemu is registered for them (binfmt_misc), which takes rights that a container lacks. Built for aarch64 and preloaded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>

typedef int Spawn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);

int posix_spawnp(pid_t *process, const char *program, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
  Spawn *spawn = (Spawn *)dlsym(RTLD_NEXT, "posix_spawnp");
  // Names without a folder are programs of this machine, such as git.
  if (!strchr(program, '/')) return spawn(process, program, actions, attributes, arguments, environment);
  size_t count = 0;
  while (arguments[count]) count++;
  const char *emulator[] = {"qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", program};
  char **all = malloc(sizeof emulator + count * sizeof *all);
  if (!all) abort();
  memcpy(all, emulator, sizeof emulator);
  // From the first argument behind the program's name to the end, which is null.
  memcpy(all + 4, arguments + 1, count * sizeof *all);
  int error = spawn(process, emulator[0], actions, attributes, all, environment);
  free(all);
  return error;
}
