/* thinwire.h: the C interface of Thinwire's exchanges, for gradients of any network.

   A group connects the ranks: processes of MPI, threads of this process, or whatever two ranks send
   bytes with. A reducer turns the gradients of all ranks into their mean, as `train` does before it
   updates the parameters: with the sparsifiers, selectors, exchanges and settings that
   `train --list` names.

   Functions that return int return 0, or one of the codes below; thinwire_error() then says why.
   A failed rank calls thinwire_group_abort(), so that no other one waits for it. A group and its
   reducers are used by one thread at a time. All vectors are f32 in host memory. */
#ifndef THINWIRE_H
#define THINWIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define THINWIRE_API __attribute__((visibility("default")))

/* The version of this interface, as in libthinwire.so.1, not that of the library. It changes when a
   program must be compiled again. */
#define THINWIRE_API_VERSION 1

enum {
  THINWIRE_OK = 0,
  THINWIRE_FAULT = 1,    /* a rank is gone, a timeout, no memory */
  THINWIRE_MISUSE = 2,   /* an unknown name, a value out of range, a null pointer */
  THINWIRE_NONFINITE = 4 /* a NaN or infinity; every rank gets this code in the same step */
};

/* `THINWIRE_API_VERSION` of the library in use. */
THINWIRE_API int thinwire_api_version(void);
/* The version of the library, such as 0.3.0. */
THINWIRE_API const char* thinwire_version(void);
/* One line about the last call of this thread that failed; valid until its next call. */
THINWIRE_API const char* thinwire_error(void);

/* ---- groups ---- */

typedef struct thinwire_group thinwire_group;

/* How the ranks of a group send bytes, for thinwire_group_of_callbacks(). */
typedef struct {
  int rank, size;
  void* user; /* the first argument of both functions */
  /* Sends out_bytes bytes to rank `to`, and at the same time receives at most in_bytes bytes from
     rank `from`; negative: no one. Messages between two ranks keep their order; an empty message is
     a message. Waits at most `seconds` for the other rank (0: without limit). Returns the bytes
     received; a negative number if it failed. */
  int64_t (*exchange)(void* user, int to, const void* out, size_t out_bytes, int from, void* in,
                      size_t in_bytes, double seconds);
  /* Tells the other ranks that this one has failed; NULL: they find out by themselves. */
  void (*abort)(void* user, const char* reason);
} thinwire_callbacks;

/* A group of ranks that send by callbacks, which are copied. */
THINWIRE_API int thinwire_group_of_callbacks(const thinwire_callbacks* callbacks,
                                             thinwire_group** group);
/* The processes of mpirun; by itself, a process is a group of one. Initialises MPI. Only one such
   group exists at a time, and under mpirun none after thinwire_finish_mpi(). */
THINWIRE_API int thinwire_group_of_mpi(thinwire_group** group);
/* Ends MPI, after all groups were freed, when all ranks call it; waits 60 seconds at most. The
   process then exits with *code: the highest of those that the ranks passed in. With a code above 0
   on any of several ranks it does not return: it ends all processes. */
THINWIRE_API int thinwire_finish_mpi(int* code);
/* Runs body(group, user) on `ranks` threads of this process and waits for all. `body` returns 0, or
   a code that ends the others; the group is freed behind it, and a reducer that is left then is a
   misuse. Returns the first such code. A thread that then goes on for longer than the timeout ends
   the process. */
THINWIRE_API int thinwire_run_threads(int ranks, int (*body)(thinwire_group* group, void* user),
                                      void* user);

THINWIRE_API int thinwire_group_rank(const thinwire_group* group);
THINWIRE_API int thinwire_group_size(const thinwire_group* group);
/* Seconds that a rank waits for another one in an exchange; 0: without limit. At first 60. */
THINWIRE_API int thinwire_group_set_timeout(thinwire_group* group, double seconds);
/* Emulates a link between the ranks, such as "100Mbit,1ms", or those of a file.json. Before any
   reducer of the group. Collective. */
THINWIRE_API int thinwire_group_set_link(thinwire_group* group, const char* link);
/* Ends the waits of the other ranks, with a reason. Of a group of MPI it ends all processes. */
THINWIRE_API int thinwire_group_abort(thinwire_group* group, const char* reason);
/* NULL is nothing. A group that still has reducers is freed with the last of them. */
THINWIRE_API void thinwire_group_free(thinwire_group* group);

/* ---- reducers ---- */

typedef struct thinwire_reducer thinwire_reducer;

/* A parameter, the same on all ranks. The first extent of a shape of two or more is that of the
   outputs, as PyTorch stores weights. */
typedef struct {
  const char* name; /* unique */
  const int64_t* shape;
  size_t dimensions;
} thinwire_tensor;

/* A reducer of gradients of these tensors. `options` is a JSON object with options of `train`:
   sparsifier, selector, exchange, scope, momentum_correction, bucket_mib, no_error_feedback,
   residual_decay, density_of, ef21, momentum and nesterov (of a momentum before the selection),
   seed, threads_per_rank (1), and in "set" the settings of --set, such as {"wire.values": "bf16"};
   NULL: all defaults. Collective: a misuse on all ranks if their tensors or options differ, but for
   threads_per_rank. An unknown option of one rank alone ends the wait of the others by timeout. */
THINWIRE_API int thinwire_reducer_create(thinwire_group* group, const char* options,
                                         const thinwire_tensor* tensors, size_t count,
                                         thinwire_reducer** reducer);

/* What changes from step to step, the same on all ranks but for `stop`. */
typedef struct {
  uint64_t step;  /* 0, 1, ...: random draws depend on it */
  double density; /* fraction of the entries to send, above 0; 1: all */
  int warmup;     /* not 0: the density is that of a warm-up, for selectors that ask */
  int stop;       /* not 0: this rank wants to stop */
} thinwire_step;

/* Cost and result of a step on this rank. */
typedef struct {
  uint64_t bytes_sent;
  uint64_t entries; /* sent by this rank; without a selection, the elements it summed */
  double seconds_select, seconds_exchange;
  int stop; /* not 0: some rank wanted to stop */
} thinwire_report;

/* Replaces the gradients of this rank by the mean over the ranks, the same bits on all: of what
   was selected, or with a momentum before the selection of such velocities. gradients[i] has the
   elements of tensor i. `report` may be NULL. After an error the gradients are unchanged, but
   residual and momentum may have taken them in, also a NaN: load a saved state after code
   THINWIRE_NONFINITE, free the reducer after any other one. Collective. */
THINWIRE_API int thinwire_reducer_step(thinwire_reducer* reducer, const thinwire_step* step,
                                       float* const* gradients, thinwire_report* report);

/* The state of this rank, such as residuals, as one block of bytes: sets *bytes to its length and
   copies it to `state`, unless `state` is NULL; *bytes is then the room there on entry. */
THINWIRE_API int thinwire_reducer_save(thinwire_reducer* reducer, void* state, size_t* bytes);
/* Continues from such a state of the same rank of as many ranks, tensors and options. */
THINWIRE_API int thinwire_reducer_load(thinwire_reducer* reducer, const void* state, size_t bytes);

/* Predicted bytes that all ranks together send in a step at this density. A method whose volume
   depends on the gradients may send others. */
THINWIRE_API int thinwire_reducer_bytes(const thinwire_reducer* reducer, double density,
                                        uint64_t* bytes);
/* Predicted seconds of such a step's exchange on a link: "1Gbit,0.1ms" between all ranks, or a
   file, inside whose nodes messages take no time. */
THINWIRE_API int thinwire_reducer_seconds(const thinwire_reducer* reducer, const char* link,
                                          double density, double* seconds);
THINWIRE_API void thinwire_reducer_free(thinwire_reducer* reducer);

#ifdef __cplusplus
}
#endif
#endif
