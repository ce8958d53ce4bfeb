/* SPDX-License-Identifier: Apache-2.0 */
/* Reading platforms: what good files say, what broken ones get (one line, never an abort). */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_config.h"
#include "core/hash.h"
#include "sim/platform.h"

static char dir[] = "/tmp/adl-platform-XXXXXX";

static void make_dir(void)
{
    if (!adl_engine())
        cr_skip_test("the simulator is not in this build");
    cr_assert(mkdtemp(dir) != NULL);
    setenv("XDG_CACHE_HOME", dir, 1);
}

static void remove_dir(void)
{
    if (!adl_engine())
        return;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_assert(system(command) == 0);
}

TestSuite(platform, .init = make_dir, .fini = remove_dir);

Test(without_simulator, says_so)
{
    if (adl_engine())
        cr_skip_test("the simulator is in this build");
    struct adl_platform_facts facts;
    struct adl_err err = {0};
    cr_assert(adl_sim_platform_reader.read("x.xml", &facts, &err) == ADL_ERR_UNSUPPORTED);
    cr_assert(strstr(err.message, "not in this build") != NULL, "%s", err.message);
}

static void expect_facts(const char *name, int devices, int per_node, int per_site, int nics)
{
    char path[512];
    snprintf(path, sizeof path, "%s/platforms/%s.xml", ADL_SOURCE_DIR, name);
    struct adl_platform_facts f;
    struct adl_err err = {0};
    cr_assert(adl_sim_platform_reader.read(path, &f, &err) == ADL_OK, "%s", err.message);
    cr_assert(f.n_devices == devices && f.devices_per_node == per_node &&
                  f.nodes_per_site == per_site && f.nics_per_node == nics,
              "%s: %d %d %d %d", name, f.n_devices, f.devices_per_node, f.nodes_per_site,
              f.nics_per_node);
    for (int d = 0; d < devices; d++)
        cr_assert(f.speeds[d] == 1);
    free(f.speeds);
}

Test(platform, shipped)
{
    expect_facts("two_hosts", 2, 1, 2, 1);
    expect_facts("nvswitch-8", 8, 8, 1, 1);
    expect_facts("h100-64", 64, 8, 8, 8);
    expect_facts("h100-64-eth", 64, 8, 8, 1);
    expect_facts("h200-16", 16, 8, 2, 8);
    expect_facts("two-dc", 64, 8, 4, 8);
}

/* Writes a platform around a body, reads it. */
static enum adl_status read_body(const char *head, const char *body,
                                 struct adl_platform_facts *facts, struct adl_err *err)
{
    char path[128];
    snprintf(path, sizeof path, "%s/p.xml", dir);
    FILE *out = fopen(path, "w");
    fprintf(out, "%s%s", head, body);
    fclose(out);
    *err = (struct adl_err){0};
    return adl_sim_platform_reader.read(path, facts, err);
}

static const char head[] = "<?xml version=\"1.0\"?>\n"
                           "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                           "<platform version=\"4.1\">\n";

/* message: how the error begins, from the file's name on. */
static void refuse(const char *body, const char *message)
{
    struct adl_platform_facts facts;
    struct adl_err err;
    enum adl_status status = read_body(head, body, &facts, &err);
    cr_assert(status == ADL_ERR_INPUT, "status %d for %s", status, body);
    const char *name = strstr(err.message, "p.xml:");
    cr_assert(name != NULL && strncmp(name, message, strlen(message)) == 0, "'%s' is not '%s'",
              err.message, message);
}

#define A                  "<host id=\"a0\" speed=\"1Gf\"/>\n"
#define B                  "<host id=\"a1\" speed=\"2Gf\"/>\n"
#define L                  "<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\"/>\n"
#define R                  "<route src=\"a0\" dst=\"a1\"><link_ctn id=\"l\"/></route>\n"
#define ZONE(prop, inside) "<zone id=\"z\" routing=\"Full\">\n" prop inside "</zone>\n</platform>\n"

Test(platform, properties_and_speeds)
{
    struct adl_platform_facts f;
    struct adl_err err;
    enum adl_status status = read_body(
        head,
        ZONE("<prop id=\"memory\" value=\"80GB\"/><prop id=\"peak\" value=\"3Gflop/s\"/>",
             "<host id=\"a0\" speed=\"1Gf\"><prop id=\"memory\" value=\"8GB\"/></host>" B L R),
        &f, &err);
    cr_assert(status == ADL_OK, "%s", err.message);
    cr_assert(f.n_devices == 2 && f.devices_per_node == 2 && f.nics_per_node == 1);
    cr_assert(f.speeds[1] == 2 && f.memory_bytes == 8e9 && f.peak_flops == 3e9);
    free(f.speeds);
}

/* The kept facts of the one platform that was read. */
static void facts_path(char path[512])
{
    char command[128];
    snprintf(command, sizeof command, "ls %s/adloco/*.facts", dir);
    FILE *list = popen(command, "r");
    cr_assert(list && fgets(path, 512, list) != NULL, "no facts are kept");
    pclose(list);
    path[strcspn(path, "\n")] = '\0';
}

static double second_speed(const char *name)
{
    char path[128];
    struct adl_platform_facts f;
    struct adl_err err = {0};
    snprintf(path, sizeof path, "%s/%s.xml", dir, name);
    cr_assert(adl_sim_platform_reader.read(path, &f, &err) == ADL_OK, "%s", err.message);
    double speed = f.speeds[1];
    free(f.speeds);
    return speed;
}

/* What is known of a file holds for every file with the same text; kept facts that are damaged do
 * not count. */
Test(platform, facts_are_kept)
{
    struct adl_platform_facts f;
    struct adl_err err;
    char path[512], command[512];
    cr_assert(read_body(head, ZONE("", A B L R), &f, &err) == ADL_OK);
    free(f.speeds);
    snprintf(command, sizeof command, "cd %s && cp p.xml q.xml && cp p.xml r.xml", dir);
    cr_assert(system(command) == 0);
    facts_path(path);
    FILE *file = fopen(path, "r+");
    double speed = 7;
    uint64_t sum;
    char data[4096];
    size_t n = fread(data, 1, sizeof data, file) - sizeof sum;
    memcpy(data + n - sizeof speed, &speed, sizeof speed); /* of the last device */
    sum = adl_hash_bytes(ADL_HASH_START, data, n);
    memcpy(data + n, &sum, sizeof sum);
    rewind(file);
    fwrite(data, 1, n + sizeof sum, file);
    fclose(file);
    cr_assert(second_speed("q") == 7, "kept facts are used");
    file = fopen(path, "r+");
    fputc('x', file);
    fclose(file);
    cr_assert(second_speed("r") == 2, "damaged facts are not");
    file = fopen(path, "r");
    cr_assert(file && fgetc(file) != 'x', "and are kept anew");
    fclose(file);
}

/* A file that changes is read again, even if only its time tells. */
Test(platform, is_not_remembered_beyond_a_change)
{
    struct adl_platform_facts f;
    struct adl_err err;
    char path[128];
    snprintf(path, sizeof path, "%s/p.xml", dir);
    cr_assert(read_body(head, ZONE("", A B L R), &f, &err) == ADL_OK);
    cr_assert(f.speeds[1] == 2);
    free(f.speeds);
    FILE *file = fopen(path, "w");
    fputs(head, file);
    fputs(ZONE("", A "<host id=\"a1\" speed=\"3Gf\"/>\n" L R), file);
    fclose(file);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1, .tv_nsec = 1}};
    utimensat(AT_FDCWD, path, times, 0);
    cr_assert(adl_sim_platform_reader.read(path, &f, &err) == ADL_OK);
    cr_assert(f.speeds[1] == 3);
    free(f.speeds);
}

Test(platform, broken_xml)
{
    refuse("<zone id=\"z\" routing=\"Full\">\n<host id=\"a0\" spee", "p.xml:5: Invalid XML");
}

Test(platform, unknown_unit)
{
    refuse(ZONE("", A B "<link id=\"l\" bandwidth=\"1GBpz\" latency=\"1us\"/>\n" R),
           "p.xml:7: unknown unit: GBpz");
}

Test(platform, duplicate_host)
{
    refuse(ZONE("", A A L R), "p.xml:6: Refusing to create a second host named 'a0'.");
}

Test(platform, unknown_link)
{
    refuse(ZONE("", A B R), "p.xml:7: Link not found: l");
}

Test(platform, zero_bandwidth)
{
    refuse(ZONE("", A B "<link id=\"l\" bandwidth=\"0Bps\" latency=\"1us\"/>\n" R),
           "p.xml:7: link 'l': bandwidth 0 is not above 0");
}

Test(platform, negative_latency)
{
    refuse(ZONE("", A B "<link id=\"l\" bandwidth=\"1GBps\" latency=\"-1us\"/>\n" R),
           "p.xml:7: link 'l': latency -1e-06 is below 0");
}

Test(platform, endless_bandwidth)
{
    refuse(ZONE("", A B "<link id=\"l\" bandwidth=\"infBps\" latency=\"1us\"/>\n" R),
           "p.xml:7: link 'l': bandwidth inf is not finite");
}

/* What the engine only says while it dies, without its own place. */
Test(platform, duplicate_link)
{
    refuse(ZONE("", A B L L R), "p.xml: Link 'l' declared several times in the platform.");
}

Test(platform, duplicate_route)
{
    refuse(ZONE("", A B L R R), "p.xml: The route between a0 and a1 already exists");
}

Test(platform, missing_profile)
{
    refuse(ZONE("", A B "<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" "
                        "bandwidth_file=\"none\"/>\n" R),
           "p.xml: Cannot open file 'none'");
}

Test(platform, zero_speed)
{
    refuse(ZONE("", A "<host id=\"a1\" speed=\"0f\"/>\n" L R),
           "p.xml:6: host 'a1': speed 0 is not above 0");
}

Test(platform, missing_route)
{
    refuse(ZONE("", A B L), "p.xml:5: no route from host 'a0' to host 'a1'");
}

Test(platform, no_hosts)
{
    refuse(ZONE("", L), "p.xml: no hosts: a platform needs at least one device");
}

Test(platform, host_without_number)
{
    refuse(ZONE("", "<host id=\"a\" speed=\"1f\"/>\n"),
           "p.xml:5: host 'a': its name must end in the number of the device");
}

Test(platform, equal_numbers)
{
    refuse(ZONE("", A "<host id=\"b0\" speed=\"1f\"/>\n" L), "p.xml:6: hosts 'a0' and 'b0' have "
                                                             "the same device number 0");
}

#define NODE(host, node)                                                                           \
    "<host id=\"" host "\" speed=\"1f\"><prop id=\"node\" value=\"" node "\"/></host>\n"

Test(platform, missing_nics)
{
    refuse(ZONE("", NODE("a0", "x") NODE("a1", "y") L R),
           "p.xml:4: node of host 'a0': no property 'nics' (network interfaces of a node)");
}

Test(platform, wrong_nics)
{
    refuse(ZONE("<prop id=\"nics\" value=\"two\"/>\n", NODE("a0", "x") NODE("a1", "y") L R),
           "p.xml: host 'a0': property nics: 'two' is not an integer (1..4096");
}

Test(platform, wrong_property)
{
    refuse(ZONE("<prop id=\"memory\" value=\"80XB\"/>\n", A L),
           "p.xml: host 'a0': property memory: '80XB' is not a number");
}

Test(platform, unequal_nodes)
{
    refuse(ZONE("<prop id=\"nics\" value=\"1\"/>\n",
                NODE("a0", "x") NODE("a1", "x") NODE("a2", "y") L R),
           "p.xml: node 'y' has 1 devices, the first one 2: they must be equal");
}

Test(platform, scattered_nodes)
{
    refuse(ZONE("<prop id=\"nics\" value=\"1\"/>\n",
                NODE("a0", "x") NODE("a1", "y") NODE("a2", "x") L R),
           "p.xml: node 'x' does not hold consecutive devices");
}

Test(platform, wrong_scale)
{
    refuse(ZONE("<prop id=\"node_size\" value=\"3\"/>\n", A B L R),
           "p.xml: property node_size: 3 does not divide the 2 hosts");
    refuse(ZONE("<prop id=\"node_size\" value=\"0\"/>\n", A B L R),
           "p.xml: host 'a0': property node_size: '0' is not an integer (1..4096");
    refuse(
        ZONE("<prop id=\"node_size\" value=\"2\"/>\n<prop id=\"devices\" value=\"2\"/>\n", A B L R),
        "p.xml: properties node_size: 2 and devices: 2: one of them at most");
}

/* Hosts that stand for nodes: each device is there, with its host's speed. */
Test(platform, hosts_as_nodes)
{
    struct adl_platform_facts f;
    struct adl_err err;
    enum adl_status status = read_body(
        head, ZONE("<prop id=\"devices\" value=\"4\"/><prop id=\"nics\" value=\"2\"/>", A B L R),
        &f, &err);
    cr_assert(status == ADL_OK, "%s", err.message);
    cr_assert(f.n_devices == 8 && f.devices_per_node == 4 && f.nics_per_node == 2);
    for (int d = 0; d < 8; d++)
        cr_assert(f.speeds[d] == (d < 4 ? 1 : 2));
    free(f.speeds);
}

static void refuse_path(const char *path, const char *message)
{
    struct adl_platform_facts facts;
    struct adl_err err = {0};
    cr_assert(adl_sim_platform_reader.read(path, &facts, &err) == ADL_ERR_INPUT);
    cr_assert(strstr(err.message, message) != NULL, "'%s' lacks '%s'", err.message, message);
    cr_assert(strchr(err.message, '\n') == NULL);
}

Test(platform, not_a_file)
{
    char path[128];
    refuse_path(dir, ": a directory where a platform file (XML) is expected");
    snprintf(path, sizeof path, "%s/none.xml", dir);
    refuse_path(path, "none.xml: No such file or directory");
    fclose(fopen(path, "w"));
    refuse_path(path, "none.xml: the file is empty");
    unlink(path);
    mkfifo(path, 0600);
    int keeps_it_open = open(path, O_RDWR);
    refuse_path(path, "none.xml: not a regular file where");
    close(keeps_it_open);
}

static void expect_line(const char *text, const char *line)
{
    cr_assert(strstr(text, line) != NULL, "no '%s' in:\n%s", line, text);
}

Test(platform, show)
{
    char path[512], *text = NULL;
    size_t n;
    snprintf(path, sizeof path, "%s/platforms/two-dc.xml", ADL_SOURCE_DIR);
    FILE *out = open_memstream(&text, &n);
    struct adl_err err = {0};
    cr_assert(adl_sim_platform_reader.show(path, out, &err) == ADL_OK, "%s", err.message);
    fclose(out);
    expect_line(text, "devices: 64, nodes: 8 of 8, sites: 2 of 4 nodes");
    expect_line(text, "sustained 400 Tflop/s, peak 989 Tflop/s, memory 80 GB at 3.35 TB/s");
    expect_line(text, "intra_node: bandwidth 450 GB/s, latency 1 us");
    expect_line(text, "inter_node: bandwidth 50 GB/s, latency 4 us");
    expect_line(text, "wan: bandwidth 1.25 GB/s, latency 20 ms");
    expect_line(text, "the first half sends 1.25 GB/s to the second half");
    free(text);
}
